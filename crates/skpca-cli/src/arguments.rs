//! The flags, and the help that teaches them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use skpca::{Fit, Level, Scaling, Spec, Target};

use crate::registry;

/// Sparse kernel PCA: non-linear features and novelty scores from a model of a few points.
///
/// Fit a model to a table, then use it on new rows:
///
///   skpca fit train.csv -o model.skpca --support 50
///   skpca score model.skpca new.csv
///   skpca transform model.skpca new.csv -o features.parquet
///
/// Which method suits your table? Try them all, and look at one page:
///
///   skpca compare train.csv -o report.html
///
/// Tables are CSV (plain or .gz, `-` for standard input), TSV, Parquet, Arrow IPC (.arrow, .feather) or .npy.
/// Exit codes: 0 done, 1 the run failed, 2 the call was wrong.
#[derive(Parser)]
#[command(name = "skpca", version, verbatim_doc_comment)]
pub struct Arguments {
    /// Say nothing but results and errors: no progress, notes or summaries
    #[arg(long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Fit a model to a table and write it to a file
    #[command(after_help = fit_help())]
    Fit(FitArguments),
    /// Features of the rows of a table: one per row, columns pc1, pc2, …
    Transform(ApplyArguments),
    /// Novelty of the rows of a table: columns score, threshold, p_value, novel
    ///
    /// The score is a squared distance in feature space; higher is more novel. `novel` is 1 where the score is above
    /// the threshold, which is the fit's --quantile of the training scores. `p_value` is the share of training rows
    /// that score as high. A model that knows the density of rows adds log_likelihood.
    Score(ApplyArguments),
    /// What a model file holds
    Inspect {
        /// Model file
        model: PathBuf,
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
        /// Also draw it: a page with its variances, support, scores and (for two columns) its contours
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Fit every method to a table in many sizes; one table, one page, one recommendation
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArguments),
    /// Compare every method on two built-in sets and draw the page: the first thing to try
    Demo {
        /// Directory for the page; with it the sets (CSV) and the models are kept too [default: the page alone, here]
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// The methods there are, or all about one: what it does, its paper, its parameters
    Methods {
        /// Method
        name: Option<String>,
    },
    /// The kernels there are, or all about one: its formula and its parameters
    Kernels {
        /// Kernel
        name: Option<String>,
    },
    /// Completions for your shell, on standard output: `skpca completions bash > …/bash-completion/completions/skpca`
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Manual pages, generated from the flags: one on standard output, or one a command into a directory
    Man {
        /// Directory for skpca.1, skpca-fit.1, …
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct TableArguments {
    /// Table: .csv, .csv.gz, .tsv, .parquet, .arrow, .feather or .npy; `-` reads CSV from standard input
    pub data: String,
    /// Column that holds labels: not a feature (a name, or a number from 0 without a header). Only methods and kernels that
    /// need labels look at them
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Columns to leave out
    #[arg(long, value_name = "COLUMN", num_args = 1.., value_delimiter = ',')]
    pub drop: Vec<String>,
    /// The first line of a text table holds data, not names
    #[arg(long)]
    pub no_header: bool,
    /// What stands between the fields of a text table, such as ';' or '|' [default: what the first line of a .csv has: a
    /// comma, semicolon or tab]
    #[arg(long, value_name = "CHARACTER", value_parser = one_byte)]
    pub delimiter: Option<u8>,
    /// The decimal sign of a text table, '.' or ',' [default: a comma between semicolons, a point elsewhere]
    #[arg(long, value_name = "SIGN", value_parser = decimal)]
    pub decimal: Option<u8>,
    /// Threads to use, 1024 at most [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Args)]
pub struct LevelArguments {
    /// Instructions to compute kernel values with: auto (the best there are), avx512, avx2 or portable. Results differ between
    /// them by rounding
    #[arg(long, default_value_t = Level::Auto, value_name = "LEVEL")]
    pub level: Level,
}

/// What fits have in common, whatever their method.
#[derive(Args)]
pub struct CommonArguments {
    /// Kernel: NAME or NAME,key=value,…
    #[arg(long, default_value_t = Fit::default().kernel, value_name = "NAME[,k=v…]")]
    pub kernel: Spec,
    /// Number of components [default: 10, or the rank if that is lower]
    #[arg(short = 'q', long, value_name = "Q", allow_negative_numbers = true)]
    pub components: Option<usize>,
    /// Centre the features [default: what the method's paper does, mostly]
    #[arg(long, conflicts_with = "no_center")]
    pub center: bool,
    /// Do not centre the features
    #[arg(long)]
    pub no_center: bool,
    /// How columns are scaled first: standard, minmax or none
    #[arg(long, default_value = "standard", value_name = "RULE")]
    pub scale: Scaling,
    /// Share of the training rows below the novelty threshold
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", allow_negative_numbers = true)]
    pub quantile: f64,
    #[command(flatten)]
    pub instructions: LevelArguments,
    /// Everything random depends on this number alone
    #[arg(long, default_value_t = 0, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

impl CommonArguments {
    pub fn fit(&self, method: Spec, target: Option<Target>) -> Fit {
        Fit {
            method,
            target,
            kernel: self.kernel.clone(),
            components: self.components,
            center: (self.center || self.no_center).then_some(self.center),
            scaling: self.scale,
            quantile: self.quantile,
            seed: self.seed,
            level: self.instructions.level,
        }
    }
}

#[derive(Args)]
pub struct FitArguments {
    #[command(flatten)]
    pub table: TableArguments,
    /// Where the model goes
    #[arg(short, long, value_name = "MODEL")]
    pub output: PathBuf,
    /// How the support is chosen: NAME or NAME,key=value,…
    #[arg(long, default_value_t = Fit::default().method, value_name = "NAME[,k=v…]")]
    pub method: Spec,
    #[command(flatten)]
    pub common: CommonArguments,
    /// How small: keep this many points
    #[arg(long, value_name = "M", conflicts_with = "fidelity", allow_negative_numbers = true)]
    pub support: Option<usize>,
    /// How good: the fewest points that capture this share of what exact kernel PCA captures [default: 0.95]
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub fidelity: Option<f64>,
    /// Refuse a fit that needs more memory than this, such as 8GB [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::parse)]
    pub memory: Option<usize>,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CompareArguments {
    #[command(flatten)]
    pub table: TableArguments,
    /// Where the page goes: one HTML file that needs no network
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sizes to ask of every method [default: 1, 2, 5 and 10 times the number of components]
    #[arg(long, value_name = "M", num_args = 1.., value_delimiter = ',', allow_negative_numbers = true)]
    pub support: Vec<usize>,
    /// How good a model should be; every method is also asked for the fewest points that hold it [default: 0.95]
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub fidelity: Option<f64>,
    /// Methods to try, NAME or NAME,key=value (separate with spaces) [default: all that apply]
    #[arg(long, value_name = "NAME[,k=v…]", num_args = 1..)]
    pub methods: Vec<Spec>,
    #[command(flatten)]
    pub common: CommonArguments,
    /// Share of the rows that no fit sees and that models are judged on, 10,000 rows at most
    #[arg(long, default_value_t = 0.25, value_name = "SHARE", allow_negative_numbers = true)]
    pub hold_out: f64,
    /// Judge models on this table instead: all rows of DATA are fitted
    #[arg(long, value_name = "TABLE", conflicts_with = "hold_out")]
    pub test: Option<String>,
    /// Time to spend, such as 90s, 5m or 1h: what does not fit in is listed
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = crate::compare::budget::parse)]
    pub budget: Duration,
    /// Keep every model in this directory, and in rows.csv which rows were held out
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

fn one_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if !byte.is_ascii_alphanumeric() && !b"\"\r\n.".contains(byte) => Ok(*byte),
        _ => Err("must be one character, such as ';', '|' or '\\t'".into()),
    }
}

fn decimal(text: &str) -> Result<u8, String> {
    match text {
        "." => Ok(b'.'),
        "," => Ok(b','),
        _ => Err("must be '.' or ','".into()),
    }
}

/// What `compare` does with labels.
const COMPARE_HELP: &str = "\
A column named by --label is not a feature; only methods and kernels that need labels see it when fitting. It judges\n\
models on the rows held out: by the accuracy of the nearest neighbour and of a linear classifier on their features, and,\n\
with two classes, by how well the novelty score tells the rarer one (area under the ROC curve).\n\n\
Examples:\n  \
skpca compare train.csv -o report.html\n  \
skpca compare train.csv --label class -q 20 --support 20,50,100 --budget 5m -o report.html\n  \
skpca compare train.csv --methods greedy l21 expansion,restarts=3 --fidelity 0.99 --json";

#[derive(Args)]
pub struct ApplyArguments {
    /// Model file
    pub model: PathBuf,
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub instructions: LevelArguments,
    /// Where the result goes: .csv, .csv.gz, .parquet, .arrow or .npy [default: CSV on standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Compute in 32 bits: about twice as fast, relative error below 1e-6
    #[arg(long)]
    pub single: bool,
}

/// Lists the registries, so that a new method or kernel explains itself.
fn fit_help() -> String {
    format!(
        "{}\n\
         Examples:\n  \
         skpca fit train.csv -o model.skpca --support 50\n  \
         skpca fit train.parquet -o model.skpca --fidelity 0.99 -q 20 --label class\n  \
         skpca fit train.csv -o model.skpca --label class --method discriminant --support 50\n  \
         skpca fit train.csv -o model.skpca --label class --method greedy --kernel conformal,base=rbf,solver=positive\n  \
         skpca fit train.csv -o model.skpca --method energy,alpha=0.1 --kernel linear\n  \
         zcat big.csv.gz | skpca fit - -o model.skpca --kernel rbf,gamma=0.1 --json",
        registry::help()
    )
}
