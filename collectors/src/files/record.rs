//! `files.parquet`: requests as the kernel's entry points for files saw them.

/// Where a request was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSource {
    /// At the entry and exit of a system call.
    Syscall,
    /// At submission to and completion by io_uring.
    IoUring,
    /// When the kernel sent it to a FUSE server and had its answer.
    Fuse,
}

impl FileSource {
    const ALL: [FileSource; 3] = [FileSource::Syscall, FileSource::IoUring, FileSource::Fuse];

    /// The name in the `source` column.
    pub fn name(self) -> &'static str {
        match self {
            FileSource::Syscall => "syscall",
            FileSource::IoUring => "io_uring",
            FileSource::Fuse => "fuse",
        }
    }

    /// The inverse of [`FileSource::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

weir_records::named!(FileSource);

/// What was asked of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOp {
    /// `read(2)` and its kin.
    Read,
    /// `write(2)` and its kin.
    Write,
    /// `fsync(2)`, `fdatasync(2)`, `sync_file_range(2)`.
    Fsync,
}

impl FileOp {
    const ALL: [FileOp; 3] = [FileOp::Read, FileOp::Write, FileOp::Fsync];

    /// The name in the `op` column.
    pub fn name(self) -> &'static str {
        match self {
            FileOp::Read => "read",
            FileOp::Write => "write",
            FileOp::Fsync => "fsync",
        }
    }

    /// The inverse of [`FileOp::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

weir_records::named!(FileOp);

weir_records::record! {
    /// One request on a file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FileRequest, FileColumns {
        /// Where it was seen.
        pub source: FileSource,
        /// Process.
        pub process: u32,
        /// Thread.
        pub pid: u32,
        /// Inode of the file; for FUSE the server's node id.
        pub inode: u64,
        /// Magic number of the file system (`statfs(2)`).
        pub fs_magic: u64,
        /// What was asked.
        pub op: FileOp,
        /// Bytes asked for; where the source does not tell (io_uring), the bytes that were transferred.
        /// Unit: bytes.
        pub size_bytes: u64,
        /// When it entered.
        /// Unit: ns.
        pub start_ns: i64,
        /// When it returned.
        /// Unit: ns.
        pub end_ns: i64,
        /// Bytes transferred, or a negative `errno`.
        pub result: i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("files.parquet");
        let row = FileRequest {
            source: FileSource::IoUring,
            process: 1,
            pid: 2,
            inode: 3,
            fs_magic: 0x0102_1994,
            op: FileOp::Write,
            size_bytes: 4096,
            start_ns: -5,
            end_ns: 6,
            result: -5,
        };
        let rows = [row, FileRequest { source: FileSource::Fuse, op: FileOp::Fsync, ..row }];
        weir_records::write_all(&path, 7, &rows).unwrap();
        assert_eq!(weir_records::read_all::<FileRequest>(&path).unwrap(), rows);
    }
}
