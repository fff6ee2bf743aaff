//! Loop devices that a test makes and takes away.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const MIB: u64 = 1 << 20;

/// A loop device over a sparse file of its own; detached when it is dropped, if it is still over that file.
pub struct LoopDisk {
    pub node: PathBuf,
    pub image: PathBuf,
    _folder: tempfile::TempDir,
}

impl LoopDisk {
    /// `None`, with a word to the reader, where none can be made.
    pub fn make(size_bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(size_bytes).unwrap();
        let Some(node) = attach(&image, &[]) else {
            eprintln!("skipped: needs root and a free loop device");
            return None;
        };
        Some(LoopDisk { node, image, _folder: folder })
    }

    /// Gives the same loop device another file.
    pub fn exchange(&mut self, image: PathBuf) {
        assert!(run("losetup", &["--detach".as_ref(), self.node.as_ref()]));
        self.image = image;
        // Somebody else may have been given the free number meanwhile.
        for _ in 0..600 {
            if run("losetup", &[self.node.as_ref(), self.image.as_ref()]) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{} is not free again", self.node.display());
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let backing = Path::new("/sys/block").join(self.node.file_name().unwrap()).join("loop/backing_file");
        if std::fs::read_to_string(backing).is_ok_and(|path| Path::new(path.trim()) == self.image) {
            run("losetup", &["--detach".as_ref(), self.node.as_ref()]);
        }
    }
}

/// Attaches a file or device to a free loop device.
pub fn attach(image: &Path, options: &[&str]) -> Option<PathBuf> {
    let output = Command::new("losetup").args(["--find", "--show"]).args(options).arg(image).output().ok()?;
    output.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Whether a command is there and succeeds; it is quiet.
pub fn run(program: &str, arguments: &[&std::ffi::OsStr]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}
