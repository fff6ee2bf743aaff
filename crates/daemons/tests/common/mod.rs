//! A state folder that is taken away with all that was started in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use weir_daemons::{Group, cluster, stop_all};

pub struct State(tempfile::TempDir);

impl State {
    /// `None`, with the reason printed, where it cannot be.
    pub fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("weir-s-").tempdir().unwrap();
        // Daemons run as users of their own.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(State(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for left in [stop_all(self.path(), |_| true), cluster::down_all(self.path())] {
            if let Err(error) = left {
                eprintln!("left: {error}");
            }
        }
        let _ = Group::of_state(self.path()).remove();
        let _ = weir_network::down(self.path());
    }
}
