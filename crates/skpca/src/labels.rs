//! Labels: the class of each row. Only the method `discriminant` and the kernel `conformal` use them.

use std::collections::HashMap;
use std::hash::Hash;

use crate::error::{Error, Result};

/// The class of each row; classes are numbered in order of appearance.
///
/// ```
/// let labels = skpca::Labels::new(["ham", "spam", "ham"])?;
/// assert_eq!((labels.classes(), labels.of(2)), (2, 0));
/// assert!(skpca::Labels::new(["ham", "ham"]).is_err());
/// # Ok::<(), skpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    classes: usize,
    of: Vec<usize>,
}

impl Labels {
    /// Creates labels from one label per row; rejects fewer than two classes.
    pub fn new<T: Eq + Hash>(labels: impl IntoIterator<Item = T>) -> Result<Labels> {
        let mut numbers = HashMap::new();
        let number = |label: T| {
            let next = numbers.len();
            *numbers.entry(label).or_insert(next)
        };
        let of: Vec<usize> = labels.into_iter().map(number).collect();
        match numbers.len() {
            0 | 1 => Err(Error::parameter("labels", format!("{} class", numbers.len()), "two classes or more")),
            classes => Ok(Labels { classes, of }),
        }
    }

    /// Creates labels from class numbers below `classes`; classes may be empty.
    pub(crate) fn numbered(classes: usize, of: Vec<usize>) -> Result<Labels> {
        match of.iter().find(|class| **class >= classes) {
            Some(class) => Err(Error::parameter("labels", class, &format!("numbers of {classes} classes, from 0"))),
            None => Ok(Labels { classes, of }),
        }
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns the class of a row.
    pub fn of(&self, row: usize) -> usize {
        self.of[row]
    }

    /// Returns the number of rows.
    pub(crate) fn n(&self) -> usize {
        self.of.len()
    }

    /// Returns the labels of some rows, in the order given; classes keep their numbers, and some may be empty.
    pub(crate) fn select(&self, rows: &[usize]) -> Labels {
        Labels { classes: self.classes, of: rows.iter().map(|&row| self.of[row]).collect() }
    }

    /// Returns the number of rows in each class.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes];
        self.of.iter().for_each(|&class| counts[class] += 1);
        counts
    }
}
