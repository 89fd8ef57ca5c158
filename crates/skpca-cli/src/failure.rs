//! How a run fails: a message, and an exit code that tells a wrong call from a failed run.

use std::fmt;

use crate::table::TableError;

/// Why the program stops.
pub enum Failure {
    /// The call was wrong: exit code 2.
    Call(String),
    /// The run failed: exit code 1.
    Run(String),
    /// The reader of our output has closed the pipe: exit code 0.
    BrokenPipe,
}

impl Failure {
    pub fn code(&self) -> u8 {
        match self {
            Failure::Call(_) => 2,
            Failure::Run(_) => 1,
            Failure::BrokenPipe => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Call(message) | Failure::Run(message) => f.write_str(message),
            Failure::BrokenPipe => Ok(()),
        }
    }
}

impl From<skpca::Error> for Failure {
    fn from(error: skpca::Error) -> Failure {
        match error {
            skpca::Error::Parameter { .. } | skpca::Error::Unknown { .. } => Failure::Call(error.to_string()),
            skpca::Error::Names { ref missing, ref unexpected } => {
                Failure::Run(format!("{error}{}", advice(missing, unexpected)))
            }
            _ => Failure::Run(error.to_string()),
        }
    }
}

/// Suggests what to do when the columns of a table are not those of the model.
fn advice(missing: &[String], unexpected: &[String]) -> String {
    let other_case = |name: &String| unexpected.iter().any(|found| found.to_lowercase() == name.to_lowercase());
    if missing.is_empty() {
        format!("; leave them out with --drop {}", unexpected.join(","))
    } else if missing.iter().all(other_case) {
        "; upper and lower case are different names".into()
    } else {
        String::new()
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Failure {
        match error {
            TableError::BrokenPipe => Failure::BrokenPipe,
            TableError::UnknownExtension { .. } | TableError::UnknownColumn { .. } => Failure::Call(error.to_string()),
            _ => Failure::Run(error.to_string()),
        }
    }
}

/// Errors of writing to standard output.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Run(error.to_string()),
        }
    }
}
