//! Log of acknowledged orders, on disk.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Receipt;
use crate::Error;

/// An append-only log: a line `KIND TOKEN ID AMOUNT` for each receipt, written to the kernel before the browser
/// continues.
pub struct OrderLog {
    path: PathBuf,
    file: Mutex<File>,
    written: AtomicU64,
}

impl OrderLog {
    /// Opens a log for appending. An incomplete last line of a killed load generator is removed.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.display().to_string(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        file.read_to_end(&mut text).map_err(io)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(io)?;
        }
        Ok(OrderLog { path: path.to_owned(), file: Mutex::new(file), written: AtomicU64::new(0) })
    }

    /// Adds a receipt.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, receipt: &Receipt) -> Result<(), Error> {
        let Receipt { kind, token, id, amount } = receipt;
        let line = format!("{kind} {token} {id} {amount}\n");
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let io = |source| Error::Io { path: self.path.display().to_string(), source };
        file.write_all(line.as_bytes()).map_err(io)?;
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Receipts that were added by this driver.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Makes sure that the lines are on the disk.
    ///
    /// # Errors
    /// They are not.
    pub fn sync(&self) -> Result<(), Error> {
        let file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.sync_data().map_err(|source| Error::Io { path: self.path.display().to_string(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_taken_away() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "order a-1 1 10\norder a-2").unwrap();
        let log = OrderLog::open(file.path()).unwrap();
        log.add(&Receipt { kind: "order", token: "b-1".into(), id: 2, amount: 20 }).unwrap();
        log.sync().unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "order a-1 1 10\norder b-1 2 20\n");
        assert_eq!(log.written(), 1);
    }
}
