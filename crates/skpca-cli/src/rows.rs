//! The rows of a fit: in memory, or in a file if they do not fit.
//!
//! ```text
//! tables ── blocks ──► memory ── full? ──► temporary file, read in passes
//!                 └──► a sample of them
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use skpca::{Fit, Random, Source as _, Watch};
use skpca_files::{FileRows, Spool};

use crate::arguments::IntakeArguments;
use crate::failure::Failure;
use crate::intake::{self, Training};
use crate::memory::Allowed;
use crate::random::{Stream, random};
use crate::table::{self, Block, Layout, ReadOptions, Tables};

/// What tables are read for, and what limits the reading.
pub struct Purpose<'a> {
    pub fit: &'a Fit,
    pub intake: &'a IntakeArguments,
    pub allowed: Allowed,
    /// The value of the label that rows must have.
    pub normal: Option<&'a str>,
    /// The column of weights.
    pub weight: Option<&'a str>,
    /// Number of rows to draw at random; by default all rows are read.
    pub sample: Option<usize>,
    /// Whether text columns are needed: labels, categories or times.
    pub texts: bool,
    /// Whether the model must be updatable, which takes another pass over all rows, scaled.
    pub updatable: bool,
    /// Number of rows before each row that are judged with it, and copied.
    pub lags: usize,
    /// Whether the fit needs its rows in memory.
    pub in_memory_only: bool,
    /// The directory for a temporary file.
    pub directory: PathBuf,
}

/// The rows of one or more tables.
pub enum Rows {
    InMemory {
        training: Training,
        /// Number of rows that these were drawn from, if they are a sample.
        of: Option<usize>,
    },
    /// Rows that are read from a file when they are needed.
    InFile { rows: FileRows, names: Option<Vec<String>>, notes: Vec<String> },
}

impl Rows {
    /// Reads tables into memory, or into a temporary file if they do not fit.
    pub fn read(tables: &[&str], options: &ReadOptions, purpose: &Purpose, watch: &dyn Watch) -> Result<Rows, Failure> {
        let mut tables = Tables::open(tables, options)?;
        if let Some(rows) = in_place(&tables, options, purpose)? {
            return Ok(Rows::InFile { rows, names: None, notes: Vec::new() });
        }
        match purpose.sample {
            Some(count) => sample(&mut tables, purpose, count, watch),
            None => all(&mut tables, purpose, watch),
        }
    }

    /// Number of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Rows::InMemory { training: Training { table, .. }, .. } => (table.rows, table.columns),
            Rows::InFile { rows, .. } => (rows.n(), rows.d()),
        }
    }
}

/// Opens a .npy file to be read in place if it is stored row by row and does not fit in memory.
fn in_place(tables: &Tables, options: &ReadOptions, purpose: &Purpose) -> Result<Option<FileRows>, Failure> {
    let plain = purpose.sample.is_none() && options.label.is_none() && options.drop.is_empty();
    let Some(file) = tables.single().filter(|file| plain && file.to_lowercase().ends_with(".npy")) else {
        return Ok(None);
    };
    let Some((start, shape, element)) = table::lies_by_rows(file) else { return Ok(None) };
    if purpose.in_memory_only || purpose.fits(shape.0, shape.1, shape.0.saturating_mul(shape.1))? {
        return Ok(None);
    }
    let rows = FileRows::open(Path::new(file), start, shape, element);
    rows.map(Some).map_err(|error| Failure::Run(format!("{file}: {error}")))
}

impl Purpose<'_> {
    /// Whether a vector of rows with this capacity fits in memory together with the fit.
    fn fits(&self, rows: usize, columns: usize, capacity: usize) -> Result<bool, Failure> {
        Ok(self.in_memory(rows.max(1), columns, capacity)? <= self.allowed.bytes)
    }

    /// Bytes of a fit, of its rows in a vector with this capacity, and of everything else stored per row.
    pub fn in_memory(&self, rows: usize, columns: usize, capacity: usize) -> Result<usize, Failure> {
        let wide = columns.saturating_mul(self.lags + 1);
        let lagged = if self.lags > 0 { wide } else { 0 };
        let beside = usize::from(self.weight.is_some()) + lagged + if self.updatable { columns } else { 0 };
        let numbers = capacity.saturating_add(rows.saturating_mul(beside));
        Ok(self.fit.memory(rows, wide)?.saturating_add(numbers.saturating_mul(size_of::<f64>())))
    }

    /// Drops the rows with other labels, and texts that are not needed.
    fn wanted(&self, block: Block, layout: &Layout) -> (Vec<f64>, Vec<String>) {
        let Block { mut values, mut texts, .. } = block;
        let (width, wide) = layout.widths;
        if let (Some(normal), Some(label)) = (self.normal, layout.label) {
            let kept: Vec<usize> =
                (0..values.len() / width).filter(|row| texts[row * wide + label] == normal).collect();
            values = kept.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect();
            texts = kept.iter().flat_map(|row| &texts[row * wide..(row + 1) * wide]).cloned().collect();
        }
        (values, if self.texts { texts } else { Vec::new() })
    }

    fn none(&self) -> Failure {
        Failure::Run(format!("--normal {}: no row has this label", self.normal.unwrap_or_default()))
    }

    fn spooling(&self, error: io::Error) -> Failure {
        let place = self.directory.display();
        Failure::Run(format!(
            "{place}: no temporary file for a table that does not fit in memory ({error}): set TMPDIR to a directory with \
             room, or take --sample"
        ))
    }
}

/// Reads all rows, into memory as long as they fit.
fn all(tables: &mut Tables, purpose: &Purpose, watch: &dyn Watch) -> Result<Rows, Failure> {
    let columns = tables.columns();
    let (mut values, mut texts): (Vec<f64>, Vec<String>) = (Vec::new(), Vec::new());
    while let Some(block) = tables.next()? {
        watch.at("reading", tables.share());
        let (more, more_texts) = purpose.wanted(block, tables.layout());
        let needed = values.len() + more.len();
        // Vectors double their capacity when they grow.
        let capacity = if needed <= values.capacity() { values.capacity() } else { needed.max(2 * values.capacity()) };
        let file = tables.file();
        if !purpose.in_memory_only && !purpose.fits(needed / columns, columns, capacity)? {
            return spool(tables, purpose, [values, more], watch);
        }
        match table::reserve(&mut values, more.len(), &file) {
            Ok(()) => values.extend(more),
            Err(error) if purpose.in_memory_only => return Err(error.into()),
            Err(_) => return spool(tables, purpose, [values, more], watch),
        }
        table::reserve(&mut texts, more_texts.len(), &file)?;
        texts.extend(more_texts);
    }
    held(tables, purpose, (values, texts), None)
}

fn held(tables: &Tables, purpose: &Purpose, read: (Vec<f64>, Vec<String>), of: Option<usize>) -> Result<Rows, Failure> {
    if read.0.is_empty() {
        return Err(purpose.none());
    }
    Ok(Rows::InMemory { training: intake::learned(tables, read, (purpose.intake, purpose.weight))?, of })
}

/// Number of blocks that may wait to be written.
const WAITING: usize = 4;

/// Writes all rows to a temporary file: those already read, and the rest. One thread reads, another writes.
fn spool(tables: &mut Tables, purpose: &Purpose, read: [Vec<f64>; 2], watch: &dyn Watch) -> Result<Rows, Failure> {
    intake::check_gaps(tables)?;
    let spool = Spool::begin(&purpose.directory, tables.columns()).map_err(|error| purpose.spooling(error))?;
    let (sender, blocks) = sync_channel(WAITING);
    let written: Result<FileRows, Failure> = thread::scope(|scope| {
        let writer = scope.spawn(|| write(spool, blocks));
        // A writer that fails closes the channel and returns its error when joined.
        let mut ended = read.into_iter().any(|values| sender.send(values).is_err());
        while !ended && let Some(block) = tables.next()? {
            watch.at("reading", tables.share());
            intake::check_gaps(tables)?;
            ended = sender.send(purpose.wanted(block, tables.layout()).0).is_err();
        }
        drop(sender);
        writer.join().expect("it does not panic").map_err(|error| purpose.spooling(error))
    });
    Ok(Rows::InFile { rows: written?, names: tables.names(), notes: intake::left_out(tables) })
}

fn write(mut spool: Spool, blocks: Receiver<Vec<f64>>) -> io::Result<FileRows> {
    blocks.iter().try_for_each(|values| spool.add(&values))?;
    spool.finish()
}

/// Draws `count` rows uniformly and keeps them in order (reservoir sampling, Vitter's algorithm R).
fn sample(tables: &mut Tables, purpose: &Purpose, count: usize, watch: &dyn Watch) -> Result<Rows, Failure> {
    let (columns, wide) = (tables.columns(), if purpose.texts { tables.layout().widths.1 } else { 0 });
    let mut random: Random = random(purpose.fit.seed, Stream::SampledRows);
    let mut drawn: Vec<(usize, Vec<f64>, Vec<String>)> = Vec::new();
    let mut seen = 0;
    while let Some(block) = tables.next()? {
        watch.at("reading", tables.share());
        let (values, texts) = purpose.wanted(block, tables.layout());
        for (row, values) in values.chunks_exact(columns).enumerate() {
            let place = if seen < count { seen } else { random.below(seen + 1) };
            if place < count {
                let new = (seen, values.to_vec(), texts[row * wide..(row + 1) * wide].to_vec());
                if place < drawn.len() { drawn[place] = new } else { drawn.push(new) }
            }
            seen += 1;
        }
    }
    drawn.sort_unstable_by_key(|(number, ..)| *number);
    let (mut values, mut texts) = (Vec::with_capacity(drawn.len() * columns), Vec::new());
    for (_, row, row_texts) in drawn {
        values.extend(row);
        texts.extend(row_texts);
    }
    held(tables, purpose, (values, texts), Some(seen))
}
