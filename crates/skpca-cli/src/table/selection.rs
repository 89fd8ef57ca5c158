//! Selects the columns of a source: features, label, and columns that are left out.

use std::collections::HashSet;

use super::error::{At, Columns, Place, TableError, TextColumn};
use super::{ReadOptions, Survey, Table};

/// The columns that [`ReadOptions`] select from one source.
pub(super) struct Selection {
    /// The name of the source, for messages.
    pub file: String,
    /// All columns of the source.
    pub columns: Columns,
    /// Source columns that become features, ascending.
    pub features: Vec<usize>,
    /// Source columns that are returned as text, ascending: label, time and categories, and with [`ReadOptions::all`]
    /// all other non-features.
    pub texts: Vec<usize>,
    /// Source column of the label.
    pub label: Option<usize>,
    /// Source column of the time.
    pub time: Option<usize>,
    /// Source columns of categories.
    pub categories: Vec<usize>,
    /// Whether empty cells become NaN instead of being an error.
    pub gaps: bool,
    /// Columns of text or dates that were left out.
    pub left_out: Vec<String>,
}

impl Selection {
    pub fn new(file: &str, columns: Columns, options: &ReadOptions) -> Result<Self, TableError> {
        check_distinct(file, &columns)?;
        let label = label(file, &columns, options)?;
        let time = options.time.as_ref().map(|name| find(file, &columns, name)).transpose()?;
        let mut left_out: HashSet<usize> = label.into_iter().chain(time).collect();
        for name in &options.drop {
            left_out.insert(find(file, &columns, name)?);
        }
        if may_ignore(&columns, options) {
            left_out.extend(options.ignore.iter().filter_map(|name| position(&columns, name)));
        }
        left_out.extend(unwanted(&columns, options));
        let mut features: Vec<usize> = (0..columns.count()).filter(|index| !left_out.contains(index)).collect();
        let categories = categories(file, &columns, &features, options)?;
        features.retain(|column| !categories.contains(column));
        if features.is_empty() {
            return Err(TableError::NoFeatures { file: file.to_string() });
        }
        let others: Vec<usize> = if options.all { left_out.into_iter().collect() } else { Vec::new() };
        let mut texts: Vec<usize> = others.into_iter().chain(label).chain(time).chain(categories.clone()).collect();
        texts.sort_unstable();
        texts.dedup();
        let (file, gaps, left_out) = (file.to_string(), options.gaps, Vec::new());
        Ok(Selection { file, columns, features, texts, label, time, categories, gaps, left_out })
    }

    /// Leaves out columns of text or dates, or rejects them in one message.
    pub fn without(&mut self, found: Vec<TextColumn>, survey: Survey) -> Result<(), TableError> {
        if found.is_empty() {
            return Ok(());
        }
        let file = self.file.clone();
        if survey == Survey::Refuse {
            let name = |text: TextColumn| (self.columns.name(text.column), text.example);
            return Err(TableError::TextColumns { file, columns: found.into_iter().map(name).collect() });
        }
        self.features.retain(|column| found.iter().all(|text| text.column != *column));
        self.left_out = found.iter().map(|text| self.columns.name(text.column)).collect();
        if self.features.is_empty() { Err(TableError::NoFeatures { file }) } else { Ok(()) }
    }

    /// The position of a value in a source column.
    pub fn place(&self, at: At, column: usize) -> Place {
        Place { file: self.file.clone(), at, column: self.columns.text(column), name: self.columns.name(column) }
    }

    /// Names of the features, if the source has names.
    pub fn names(&self) -> Option<Vec<String>> {
        match &self.columns {
            Columns::Named(names) => Some(self.features.iter().map(|&index| names[index].clone()).collect()),
            Columns::Numbered(_) => None,
        }
    }

    /// Makes a table from the features, row by row, and the labels.
    pub fn table(self, values: Vec<f64>, label: Vec<String>) -> Result<Table, TableError> {
        if values.is_empty() {
            return Err(TableError::NoRows { file: self.file });
        }
        let (names, columns) = (self.names(), self.features.len());
        let label = self.label.map(|_| label);
        Ok(Table { names, rows: values.len() / columns, columns, values, label })
    }
}

/// Whether the ignored columns may be left out. A column number is valid in every source, so a source without names
/// must be wider than expected.
fn may_ignore(columns: &Columns, options: &ReadOptions) -> bool {
    match (columns, options.expected) {
        (Columns::Numbered(count), Some(expected)) => *count > expected,
        _ => true,
    }
}

/// Columns that are not wanted. If a wanted column is missing, nothing is left out, since its name may be misspelt.
fn unwanted(columns: &Columns, options: &ReadOptions) -> Vec<usize> {
    let (Columns::Named(names), Some(wanted)) = (columns, &options.wanted) else { return Vec::new() };
    let wanted: HashSet<&String> = wanted.iter().collect();
    let found = names.iter().filter(|name| wanted.contains(name)).count();
    if found < wanted.len() { Vec::new() } else { (0..names.len()).filter(|&i| !wanted.contains(&names[i])).collect() }
}

fn check_distinct(file: &str, columns: &Columns) -> Result<(), TableError> {
    let Columns::Named(names) = columns else {
        return Ok(());
    };
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(TableError::DuplicateColumn { file: file.to_string(), name: name.clone() }),
        None => Ok(()),
    }
}

fn label(file: &str, columns: &Columns, options: &ReadOptions) -> Result<Option<usize>, TableError> {
    match &options.label {
        None => Ok(None),
        Some(name) if options.label_optional => Ok(position(columns, name)),
        Some(name) => find(file, columns, name).map(Some),
    }
}

/// Source columns of categories. Those of a model may be missing here; the encoder reports them.
fn categories(file: &str, columns: &Columns, used: &[usize], options: &ReadOptions) -> Result<Vec<usize>, TableError> {
    if let (Columns::Numbered(_), Some(_)) = (columns, options.expected) {
        return Ok(options.category_numbers.iter().filter_map(|&k| used.get(k).copied()).collect());
    }
    let known = |name: &&String| options.wanted.is_none() || position(columns, name).is_some();
    options.categories.iter().filter(known).map(|name| find(file, columns, name)).collect()
}

fn find(file: &str, columns: &Columns, name: &str) -> Result<usize, TableError> {
    position(columns, name).ok_or_else(|| TableError::UnknownColumn {
        file: file.to_string(),
        name: name.to_string(),
        columns: columns.clone(),
    })
}

fn position(columns: &Columns, name: &str) -> Option<usize> {
    match columns {
        Columns::Named(names) => names.iter().position(|known| known == name),
        Columns::Numbered(count) => name.parse().ok().filter(|index| index < count),
    }
}
