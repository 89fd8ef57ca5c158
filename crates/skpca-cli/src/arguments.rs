//! The command-line arguments and their help texts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use skpca::{Fit, Learning, Level, Missing, RowOrder, Scaling, Spec, Target, Unknown};

use crate::{intake, registry};

/// Sparse kernel PCA: non-linear features and novelty scores from a model that keeps only a few points.
///
/// Fit a model to a table, then apply it to new rows:
///
///   skpca fit train.csv -o model.skpca --support 50
///   skpca score model.skpca new.csv
///   skpca transform model.skpca new.csv -o features.parquet
///
/// To find the method that suits your table, compare them all on one page:
///
///   skpca compare train.csv -o report.html
///
/// Tables are CSV (plain or .gz, `-` for standard input), TSV, Parquet, Arrow IPC (.arrow, .feather) or .npy.
/// Exit codes: 0 success, 1 the run failed, 2 invalid arguments.
#[derive(Parser)]
#[command(name = "skpca", version, verbatim_doc_comment)]
pub struct Arguments {
    /// Print only results and errors: no progress, notes or summaries
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
    /// Compute the features of a table: columns pc1, pc2, …, one line per row
    #[command(after_help = APPLY_HELP)]
    Transform(ApplyArguments),
    /// Score the rows of a table for novelty: columns score, threshold, p_value, novel
    ///
    /// The score is a squared distance in feature space; higher is more novel. `novel` is 1 if the score is above the
    /// threshold, and `p_value` is the share of training rows that score at least as high. After
    /// `fit --false-alarms 1%` both are valid for new rows: 1% of normal rows score above the threshold. Otherwise the
    /// threshold is a quantile of the training scores (see `fit --quantile`), which new rows exceed more often. A model
    /// with a density adds the column log_likelihood.
    #[command(after_help = APPLY_HELP)]
    Score(ScoreArguments),
    /// Draw a process-monitoring page: scores, T², alarms with their causes, and drift over the rows of a table
    ///
    /// The page shows the score and Hotelling's T² of every row with their limits, runs of alarms with the inputs that
    /// caused them, and how far p-values and the share of alarms drift from what the fit promised. It is a single HTML
    /// file that needs no network and stays below 3 MB for any number of rows.
    #[command(after_help = MONITOR_HELP)]
    Monitor(MonitorArguments),
    /// Update a model that was fitted with --updatable with the rows of a table
    ///
    /// In batches of 1000, rows are scored by the current model and then learned. Components, threshold and p-values
    /// follow the rows; points are added or exchanged when a sample of the rows shows that the current ones no longer
    /// reach the target of the fit. A detector (--novelty, --false-alarms) does not learn rows above its threshold.
    #[command(after_help = UPDATE_HELP)]
    Update(UpdateArguments),
    /// Describe a model file
    Inspect {
        /// Model file
        model: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
        /// Also write an HTML page with its variances, support, scores and (for two columns) contours
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Export a model for use without skpca: an ONNX graph (.onnx), a C99 header (.h) or a SQL query (.sql)
    #[command(after_help = EXPORT_HELP)]
    Export(ExportArguments),
    /// Fit every method to a table at many sizes, draw one page, and recommend one model
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareArguments),
    /// List the fidelity at every size or penalty, for little more than the cost of one fit
    ///
    /// Methods that add points one by one, such as the default, have a path of sizes, printed as columns points,
    /// fidelity. Methods with a penalty have a path of penalties, each a share of the largest useful one, printed as
    /// columns share, penalty, points, fidelity, objective, gap, converged.
    #[command(after_help = PATH_HELP)]
    Path(PathArguments),
    /// Print sparse principal components of a table or a covariance matrix: each has few non-zero loadings
    #[command(after_help = LOADINGS_HELP)]
    Loadings(LoadingsArguments),
    /// Compare every method on two built-in data sets and draw the page (try this first)
    Demo {
        /// Directory for the page, the data sets (CSV) and the models [default: the page only, in the current
        /// directory]
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// List the methods, or describe one: what it does, its paper and its parameters
    Methods {
        /// Name of a method
        name: Option<String>,
    },
    /// List the kernels, or describe one: its formula and its parameters
    Kernels {
        /// Name of a kernel
        name: Option<String>,
    },
    /// Print completions for your shell: `skpca completions bash > …/bash-completion/completions/skpca`
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one per command to a directory
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
    /// Column of labels: its name, or its number from 0 if the table has no header. It is not a feature, and only
    /// methods and kernels that need labels use it in a fit
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Columns to leave out
    #[arg(long, value_name = "COLUMN", num_args = 1.., value_delimiter = ',')]
    pub drop: Vec<String>,
    /// The first line of a text table is data, not column names
    #[arg(long)]
    pub no_header: bool,
    /// Field separator of a text table, such as ';' or '|' [default: comma, semicolon or tab, whichever the first line
    /// of a .csv file has]
    #[arg(long, value_name = "CHARACTER", value_parser = one_byte)]
    pub delimiter: Option<u8>,
    /// Decimal separator of a text table, '.' or ',' [default: ',' if semicolons separate fields, otherwise '.']
    #[arg(long, value_name = "SIGN", value_parser = decimal)]
    pub decimal: Option<u8>,
    /// Number of threads, at most 1024; results do not depend on it [default: OMP_NUM_THREADS, or one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// How the columns of a table are prepared before a fit. Models store this and treat new rows in the same way.
#[derive(Args, Clone)]
pub struct IntakeArguments {
    /// What to do with empty cells: refuse (an error), median (fill them with the median of the column, or its most
    /// frequent category) or drop (leave out their rows)
    #[arg(long, default_value = "refuse", value_name = "RULE")]
    pub missing: Missing,
    /// Categorical columns: each value becomes a column of its own, 1 in the rows that have it and 0 elsewhere
    #[arg(long, value_name = "COLUMN", num_args = 1.., value_delimiter = ',')]
    pub categorical: Vec<String>,
    /// What to do with values of a categorical column that occur in new rows but not in DATA: refuse (an error), or
    /// zero (all columns made from it are 0)
    #[arg(long, default_value = "refuse", value_name = "RULE", requires = "categorical")]
    pub unknown: Unknown,
    /// Leave out columns of text or dates
    #[arg(long)]
    pub numeric_only: bool,
    /// Time column, which is not a feature. Rows must be sorted by it
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
}

impl IntakeArguments {
    /// Whether there is nothing that a model would have to store.
    pub fn is_plain(&self) -> bool {
        self.missing == Missing::Refuse && self.categorical.is_empty() && self.time.is_none()
    }
}

#[derive(Args)]
pub struct LevelArguments {
    /// Instruction set for kernel values: auto (the best one available), avx512, avx2 or portable. Their results differ
    /// by rounding only
    #[arg(long, default_value_t = Level::Auto, value_name = "LEVEL")]
    pub level: Level,
}

/// Arguments that all fits share.
#[derive(Args)]
pub struct CommonArguments {
    #[arg(long, value_name = "NAME[,k=v…]", help = kernel_help())]
    pub kernel: Option<Spec>,
    /// Number of components [default: 10, or the rank if that is lower]
    #[arg(short = 'q', long, value_name = "Q", allow_negative_numbers = true)]
    pub components: Option<usize>,
    /// Centre the features [default: usually as in the paper of the method]
    #[arg(long, conflicts_with = "no_center")]
    pub center: bool,
    /// Do not centre the features
    #[arg(long)]
    pub no_center: bool,
    /// How columns are scaled before the fit: standard, minmax or none
    #[arg(long, default_value = "standard", value_name = "RULE")]
    pub scale: Scaling,
    /// Share of the training rows below the novelty threshold
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", allow_negative_numbers = true)]
    pub quantile: f64,
    #[command(flatten)]
    pub instructions: LevelArguments,
    /// Seed of the random numbers: the same seed gives the same result
    #[arg(long, default_value_t = 0, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

fn kernel_help() -> String {
    format!("Kernel: NAME or NAME,key=value,… [default: {}, or what the method needs]", Fit::default().kernel)
}

impl CommonArguments {
    pub fn fit(&self, method: Spec, target: Option<Target>) -> Fit {
        let default = || skpca::method::entry(&method).map_or(Fit::default().kernel, |entry| entry.kernel());
        Fit {
            kernel: self.kernel.clone().unwrap_or_else(default),
            method,
            target,
            components: self.components,
            center: (self.center || self.no_center).then_some(self.center),
            scaling: self.scale,
            quantile: self.quantile,
            seed: self.seed,
            level: self.instructions.level,
            ..Fit::default()
        }
    }
}

#[derive(Args)]
pub struct FitArguments {
    #[command(flatten)]
    pub table: TableArguments,
    /// More tables with the same columns, matched by name. A directory stands for all tables in it
    #[arg(value_name = "DATA")]
    pub more: Vec<String>,
    #[command(flatten)]
    pub intake: IntakeArguments,
    /// File to write the model to
    #[arg(short, long, value_name = "MODEL")]
    pub output: PathBuf,
    /// Fit a detector for `skpca score`: --method landmarks, 100 points (or --support), all components rather than only
    /// the leading ones, a wider kernel, and --false-alarms 5%
    #[arg(long)]
    pub novelty: bool,
    /// Method that chooses the support: NAME or NAME,key=value,… [default: expansion; with --novelty, landmarks]
    #[arg(long, value_name = "NAME[,k=v…]")]
    pub method: Option<Spec>,
    #[command(flatten)]
    pub common: CommonArguments,
    /// Number of points to keep
    #[arg(long, value_name = "M", conflicts_with = "fidelity", allow_negative_numbers = true)]
    pub support: Option<usize>,
    /// Keep the fewest points that capture this share of what exact kernel PCA captures [default: 0.95]
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub fidelity: Option<f64>,
    /// Fit only the rows with this value of the label: a model of what is normal
    #[arg(long, value_name = "VALUE", requires = "label")]
    pub normal: Option<String>,
    /// Add points until the scores agree with exact ones: their rank correlation on held-out rows must be at least R.
    /// The report states the agreement
    #[arg(long, value_name = "R", conflicts_with_all = ["support", "fidelity", "landmarks"], allow_negative_numbers = true)]
    pub score_fidelity: Option<f64>,
    /// Column of weights, which is not a feature: a row of weight 3 counts as three rows. Rows of weight 0 are left out
    #[arg(long, value_name = "COLUMN", conflicts_with = "landmarks")]
    pub weight: Option<String>,
    /// Exclude outliers among the training rows from the fit, at most a quarter of the rows. The report lists them
    #[arg(long, conflicts_with = "landmarks")]
    pub robust: bool,
    /// False-alarm rate: the share of new normal rows that may score above the threshold, such as 1% or 0.01. Threshold
    /// and p-values are then computed with models that have not seen the rows they score, which takes 3 to 10 more fits
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "quantile")]
    pub false_alarms: Option<f64>,
    /// What the order of the rows means for --false-alarms: time, any (nothing), or auto (time, if neighbouring rows are
    /// similar)
    #[arg(long, value_name = "ORDER", default_value_t = RowOrder::Auto)]
    pub row_order: RowOrder,
    /// Judge each row together with this many rows before it (dynamic kernel PCA). Rows must be in time order; `score`,
    /// `transform` and `monitor` then add the rows before by themselves
    #[arg(
        long,
        value_name = "L",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(..=1000),
        conflicts_with_all = ["sample", "updatable", "landmarks", "normal", "weight", "categorical", "missing"],
    )]
    pub lags: u64,
    /// Use exactly the rows of this table as support points. It must have the columns of DATA in the same order and
    /// units
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["support", "fidelity"])]
    pub landmarks: Option<String>,
    /// Store what `skpca update` needs in the model: sums over the rows, and 500 of the rows themselves
    #[arg(long)]
    pub updatable: bool,
    /// Memory for the rows and the fit, such as 8GB. Rows that do not fit into it go to a temporary file, next to the
    /// model or in TMPDIR, and are read in passes [default: three quarters of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::parse)]
    pub memory: Option<usize>,
    /// Fit only this many rows, drawn at random
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub sample: Option<u64>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

impl FitArguments {
    /// Returns the names of the tables, in order.
    pub fn tables(&self) -> Vec<&str> {
        [&self.table.data].into_iter().chain(&self.more).map(String::as_str).collect()
    }

    /// Returns the fit that the arguments describe.
    pub fn fit(&self) -> Fit {
        let usual = if self.novelty { Fit::detector() } else { Fit::default() };
        let target = self.support.map(Target::Support).or(self.fidelity.map(Target::Fidelity));
        // --quantile asks for a share of the training rows instead of a false-alarm rate.
        let false_alarms = usual.false_alarms.filter(|_| self.common.quantile == usual.quantile);
        Fit {
            false_alarms: self.false_alarms.or(false_alarms),
            statistic: usual.statistic,
            score_fidelity: self.score_fidelity,
            robust: self.robust,
            row_order: intake::row_order(self.row_order, self.intake.time.is_some() || self.lags > 0),
            ..self.common.fit(self.method.clone().unwrap_or(usual.method), target)
        }
    }
}

#[derive(Args)]
pub struct UpdateArguments {
    /// Model file that was fitted with --updatable
    pub model: PathBuf,
    #[command(flatten)]
    pub table: TableArguments,
    /// File to write the new model to. It may be MODEL, which is replaced only once the new model is complete
    #[arg(short, long, value_name = "NEW")]
    pub output: PathBuf,
    /// With each new row, multiply the weight of all earlier rows by this factor, above 0 and at most 1. With 0.999,
    /// about the last 1000 rows count [default: the factor of the previous update; 1, which forgets nothing, in the
    /// first]
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub forget: Option<f64>,
    /// Learn rows above the threshold too
    #[arg(long)]
    pub learn_alarms: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

impl UpdateArguments {
    /// Returns how the model learns, given the settings `before` this update.
    pub fn learning(&self, before: Learning) -> Learning {
        Learning { forget: self.forget.unwrap_or(before.forget), alarms: before.alarms || self.learn_alarms, ..before }
    }
}

/// Examples of `update`.
const UPDATE_HELP: &str = "\
Examples:\n  \
skpca fit january.csv -o model.skpca --novelty --updatable\n  \
skpca update model.skpca february.csv -o model.skpca\n  \
skpca update model.skpca march.csv -o april.skpca --forget 0.9995";

#[derive(Args)]
pub struct LoadingsArguments {
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub intake: IntakeArguments,
    /// The table is a covariance or correlation matrix, with one row per column
    #[arg(long, conflicts_with_all = ["scale", "no_center"])]
    pub covariance: bool,
    /// Method and sparsity: NAME,nonzero=7:4:4 for the numbers of non-zero loadings, NAME,penalty=0.1 or other
    /// parameters (see `skpca methods NAME`) [default: the method that has loadings, as sparse as --fidelity allows]
    #[arg(long, value_name = "NAME[,k=v…]")]
    pub method: Option<Spec>,
    /// Number of components [default: 10, or the rank if that is lower]
    #[arg(short = 'q', long, value_name = "Q", allow_negative_numbers = true)]
    pub components: Option<usize>,
    /// Use at most this many columns in total
    #[arg(long, value_name = "M", conflicts_with = "fidelity", allow_negative_numbers = true)]
    pub support: Option<usize>,
    /// Find the sparsest loadings that capture this share of what PCA captures [default: 0.95]
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub fidelity: Option<f64>,
    /// How columns are scaled beforehand: standard, minmax or none
    #[arg(long, default_value = "standard", value_name = "RULE")]
    pub scale: Scaling,
    /// Do not centre the columns
    #[arg(long)]
    pub no_center: bool,
    /// Seed of the random numbers: the same seed gives the same result
    #[arg(long, default_value_t = 0, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
    /// File for the loadings, one row per component: .csv, .csv.gz, .parquet, .arrow or .npy
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CompareArguments {
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub intake: IntakeArguments,
    /// File for the page: a single HTML file that needs no network
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sizes to try with every method [default: 1, 2, 5 and 10 times the number of components]
    #[arg(long, value_name = "M", num_args = 1.., value_delimiter = ',', allow_negative_numbers = true)]
    pub support: Vec<usize>,
    /// Fidelity that a model should reach; every method is also fitted with the fewest points that reach it [default:
    /// 0.95]
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub fidelity: Option<f64>,
    /// Fit only the rows with this value of the label. All other rows count as novel, and models are judged by how well
    /// they detect them
    #[arg(long, value_name = "VALUE", requires = "label")]
    pub normal: Option<String>,
    /// Methods to try, NAME or NAME,key=value, separated by spaces [default: all that apply]
    #[arg(long, value_name = "NAME[,k=v…]", num_args = 1..)]
    pub methods: Vec<Spec>,
    #[command(flatten)]
    pub common: CommonArguments,
    /// Share of the rows, at most 10,000, that are held out of the fits to judge the models
    #[arg(long, default_value_t = 0.25, value_name = "SHARE", allow_negative_numbers = true)]
    pub hold_out: f64,
    /// Judge the models on this table, and fit all rows of DATA
    #[arg(long, value_name = "TABLE", conflicts_with = "hold_out")]
    pub test: Option<String>,
    /// Time to spend, such as 90s, 5m or 1h. Fits that are skipped for lack of time are listed
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = crate::compare::budget::parse)]
    pub budget: Duration,
    /// Write every model to this directory, and the list of held-out rows to rows.csv
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct PathArguments {
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub intake: IntakeArguments,
    /// Method: NAME or NAME,key=value,…
    #[arg(long, default_value_t = Fit::default().method, value_name = "NAME[,k=v…]")]
    pub method: Spec,
    #[command(flatten)]
    pub common: CommonArguments,
    /// Largest number of points [default: 3 times the number of components]
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub most: Option<usize>,
    /// Penalties, as shares of the largest useful one, in this order [default: 20 from 1 down to 0.01]
    #[arg(long, value_name = "SHARE", num_args = 1.., value_delimiter = ',', allow_negative_numbers = true)]
    pub shares: Vec<f64>,
    /// File for the table: .csv, .csv.gz, .parquet, .arrow or .npy [default: CSV on standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
}

/// Examples of `path`.
const PATH_HELP: &str = "\
Examples:\n  \
skpca path train.csv --most 50\n  \
skpca path train.csv --method l21 -q 5 --shares 0.5,0.2,0.1,0.05 -o path.csv";

/// Parses a rate, given as a percentage or a number.
fn rate(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let rate = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    rate.filter(|rate| *rate > 0.0 && *rate < 1.0).ok_or_else(|| "must be between 0 and 1, or 0% and 100%".into())
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

/// How `transform` and `score` stream rows, with examples.
const APPLY_HELP: &str = "\
Rows are read block by block, so tables may be larger than memory. Lines from a pipe are answered as they arrive; an\n\
output file (-o) appears once all rows are done.\n\n\
Examples:\n  \
skpca score model.skpca new.csv -o scores.parquet --explain 3\n  \
tail -f log.csv | skpca score model.skpca - --append --skip-bad";

/// What loadings are, with examples.
const LOADINGS_HELP: &str = "\
A component is a weighted sum of a few columns. Adjusted variances count only what earlier components do not explain.\n\n\
Examples:\n  \
skpca loadings train.csv -q 4 --fidelity 0.9\n  \
skpca loadings train.csv --method spca,nonzero=5 -o loadings.csv\n  \
skpca loadings correlation.csv --covariance -q 6 --method spca,nonzero=7:4:4:1:1:1";

/// How `compare` uses labels and recommends a model, with examples.
const COMPARE_HELP: &str = "\
The --label column is not a feature; only methods and kernels that need labels see it in a fit. It serves to judge the\n\
models on held-out rows: by the accuracy of a nearest-neighbour and a linear classifier on their features and, with two\n\
classes, by how well the novelty score detects the rarer one (area under the ROC curve, AUROC). The AUROC decides if the\n\
rarer class has at most a tenth of the rows, and with --normal, which fits one class alone.\n\n\
As time permits, this is repeated with other rows held out, until every row has been used to judge. Models are compared\n\
row by row. The recommended model is the simplest that reaches the fidelity and is not significantly worse than the best,\n\
unless a model that misses the fidelity is better by more than chance. The simplest has the fewest points; if sizes differ\n\
by less than half, it is the default method, or else the one that `skpca methods` lists first.\n\n\
Examples:\n  \
skpca compare train.csv -o report.html\n  \
skpca compare train.csv --label class -q 20 --support 20,50,100 --budget 5m -o report.html\n  \
skpca compare train.csv --label state --normal ok -o report.html\n  \
skpca compare train.csv --methods greedy l21 expansion,restarts=3 --fidelity 0.99 --json";

#[derive(Args)]
pub struct ApplyArguments {
    /// Model file
    pub model: PathBuf,
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub instructions: LevelArguments,
    /// File for the results: .csv, .csv.gz, .parquet, .arrow or .npy [default: CSV on standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Compute in 32-bit floating point: about twice as fast, with a relative error below 1e-6
    #[arg(long)]
    pub single: bool,
    /// Copy the columns of the table in front of the results, label and dropped columns included
    #[arg(long)]
    pub append: bool,
    /// Skip rows that cannot be used (a missing value, a word, too few fields) and list them on standard error. They
    /// have no line in the output; use --append to see which row each line belongs to
    #[arg(long)]
    pub skip_bad: bool,
}

#[derive(Args)]
pub struct MonitorArguments {
    /// Model file
    pub model: PathBuf,
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub instructions: LevelArguments,
    /// File for the page: a single HTML file that needs no network
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Column whose text labels the rows, such as a timestamp: its name, or its number from 0 if the table has no
    /// header [default: the row number]
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Skip rows that cannot be used (a missing value, a word, too few fields) and report them on standard error and on
    /// the page
    #[arg(long)]
    pub skip_bad: bool,
}

/// What `monitor` expects, with examples.
const MONITOR_HELP: &str = "\
Rows should be in time order. They are read block by block, so tables may be larger than memory. An alarm is a row whose\n\
score is above the threshold of the model, as in `skpca score`.\n\n\
Examples:\n  \
skpca fit normal.csv -o model.skpca --novelty --false-alarms 1%\n  \
skpca monitor model.skpca today.csv -o chart.html --time timestamp";

#[derive(Args)]
pub struct ExportArguments {
    /// Model file
    pub model: PathBuf,
    /// File to export to: .onnx, .h or .sql
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Use 64-bit inputs, arithmetic and outputs, as SQL always does [default: 32-bit inputs and outputs, and 32-bit
    /// arithmetic where it is accurate enough]
    #[arg(long)]
    pub double: bool,
    /// Prefix of the names in the C header [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Table that the SQL query reads [default: data]
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Columns that the SQL query copies in front of its results, such as a key
    #[arg(long, value_name = "COLUMN", num_args = 1.., value_delimiter = ',')]
    pub keep: Vec<String>,
}

/// What the exports compute, with examples.
const EXPORT_HELP: &str = "\
Every export scales the columns as the model does and returns features, score and alarm; ONNX and C also return the p-value,\n\
and the log-likelihood if the model has one. The alarm is raised if the score is above the threshold or is not a number.\n\n\
Examples:\n  \
skpca export model.skpca -o model.onnx\n  \
skpca export model.skpca -o model.h --double --name pump\n  \
skpca export model.skpca -o model.sql --table readings --keep id,time";

#[derive(Args)]
pub struct ScoreArguments {
    #[command(flatten)]
    pub apply: ApplyArguments,
    /// Add both statistics of process monitoring, each with its own limit: columns spe, spe_limit (deviation outside the
    /// span of the components), t2, t2_limit (within it). The score combines both. Needs a model fitted with
    /// --false-alarms or --novelty
    #[arg(long)]
    pub statistics: bool,
    /// Add the N inputs that contribute most to each score, as columns cause1, contribution1, expected1, … A
    /// contribution is how much the score would fall if the input had the value that the model expects; the
    /// contributions of all inputs add up to the score minus its usual value
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub explain: usize,
}

/// Builds the help from the registries, so that it lists every method and kernel.
fn fit_help() -> String {
    format!(
        "{}\n\
         Examples:\n  \
         skpca fit train.csv -o model.skpca --support 50\n  \
         skpca fit normal.csv -o model.skpca --novelty --false-alarms 1%\n  \
         skpca fit train.parquet -o model.skpca --fidelity 0.99 -q 20 --label class\n  \
         skpca fit train.csv -o model.skpca --label class --method discriminant --support 50\n  \
         skpca fit train.csv -o model.skpca --label class --method greedy --kernel conformal,base=rbf,solver=positive\n  \
         skpca fit train.csv -o model.skpca --method energy,alpha=0.1 --kernel linear\n  \
         zcat big.csv.gz | skpca fit - -o model.skpca --kernel rbf,gamma=0.1 --json",
        registry::help()
    )
}
