//! Output file that gets its name when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// Written as `NAME.partial`; removed if it is abandoned.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Partial {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|source| Error::Io { path: partial.clone(), source })?;
        Ok(Partial { path: path.to_owned(), partial, file: Some(BufWriter::with_capacity(1 << 18, file)) })
    }

    /// Writes with the errors of this file.
    pub(super) fn put<T>(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T, Error> {
        let written = match &mut self.file {
            Some(file) => write(file),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        written.map_err(|source| Error::Io { path: self.partial.clone(), source })
    }

    /// Completes the file; its name.
    pub(super) fn finish(mut self) -> Result<PathBuf, Error> {
        let io = |source| Error::Io { path: self.partial.clone(), source };
        if let Some(file) = self.file.take() {
            let file = file.into_inner().map_err(|error| io(error.into_error()))?;
            file.sync_all().map_err(io)?;
            std::fs::rename(&self.partial, &self.path).map_err(io)?;
        }
        Ok(self.path.clone())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Of no use to anyone.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
