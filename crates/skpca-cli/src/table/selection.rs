//! Which columns of a source are features, which one is the label, and which are left out.

use std::collections::HashSet;

use super::error::{At, Columns, Place, TableError};
use super::{ReadOptions, Table};

/// The answer to [`ReadOptions`] for one source.
pub(super) struct Selection {
    /// The name of the source, for messages.
    pub file: String,
    /// All columns of the source.
    pub columns: Columns,
    /// Source columns that become features, ascending.
    pub features: Vec<usize>,
    /// Source column that becomes the label.
    pub label: Option<usize>,
}

impl Selection {
    pub fn new(file: &str, columns: Columns, options: &ReadOptions) -> Result<Self, TableError> {
        check_distinct(file, &columns)?;
        let label = label(file, &columns, options)?;
        let mut left_out: HashSet<usize> = label.into_iter().collect();
        for name in &options.drop {
            left_out.insert(find(file, &columns, name)?);
        }
        if may_ignore(&columns, options) {
            left_out.extend(options.ignore.iter().filter_map(|name| position(&columns, name)));
        }
        let features: Vec<usize> = (0..columns.count()).filter(|index| !left_out.contains(index)).collect();
        if features.is_empty() {
            return Err(TableError::NoFeatures { file: file.to_string() });
        }
        Ok(Selection { file: file.to_string(), columns, features, label })
    }

    /// Where the value of a source column stands.
    pub fn place(&self, at: At, column: usize) -> Place {
        Place { file: self.file.clone(), at, column: self.columns.text(column), name: self.columns.name(column) }
    }

    /// Puts what was read together; `values` holds the features row by row.
    pub fn table(self, values: Vec<f64>, label: Vec<String>) -> Result<Table, TableError> {
        if values.is_empty() {
            return Err(TableError::NoRows { file: self.file });
        }
        let names = match self.columns {
            Columns::Named(names) => Some(self.features.iter().map(|&index| names[index].clone()).collect()),
            Columns::Numbered(_) => None,
        };
        let columns = self.features.len();
        let label = self.label.map(|_| label);
        Ok(Table { names, rows: values.len() / columns, columns, values, label })
    }
}

/// A number names some column of every source: without names, only a source wider than expected has extra columns.
fn may_ignore(columns: &Columns, options: &ReadOptions) -> bool {
    match (columns, options.expected) {
        (Columns::Numbered(count), Some(expected)) => *count > expected,
        _ => true,
    }
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
