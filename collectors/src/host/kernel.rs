//! Kernel that was booted for the runs of a level of the factor `kernel`.

use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A level of the factor `kernel`, and the boot that belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BootedKernel {
    /// Its name in studies and in the inventory (`weir_kernels`).
    pub name: String,
    /// `uname -r` after the boot.
    pub release: String,
    /// `uname -v` after the boot.
    pub version: String,
    /// `/proc/sys/kernel/random/boot_id` of that boot.
    pub boot_id: String,
    /// Where the kernel came from: package and version, or path.
    pub source: String,
    /// SHA-256 of the image (`vmlinuz`).
    pub image_sha256: String,
}

impl BootedKernel {
    /// What this host runs, under the names of the fields; without what the boot loader alone knows.
    fn running() -> BootedKernel {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default().trim().to_owned()
        };
        BootedKernel {
            release: read("osrelease"),
            version: read("version"),
            boot_id: read("random/boot_id"),
            ..BootedKernel::default()
        }
    }

    /// What differs between this boot and the host's present one. `None` if it is the present one.
    pub fn difference(&self) -> Option<String> {
        self.difference_to(&BootedKernel::running())
    }

    fn difference_to(&self, running: &BootedKernel) -> Option<String> {
        let facts = [
            ("release", &self.release, &running.release),
            ("version", &self.version, &running.version),
            ("boot_id", &self.boot_id, &running.boot_id),
        ];
        let (fact, expected, found) = facts.into_iter().find(|(_, expected, found)| expected != found)?;
        Some(format!("{fact}: found {found}, expected {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_build_or_boot_is_a_difference() {
        let running = BootedKernel::running();
        assert!(!running.release.is_empty() && !running.version.is_empty() && !running.boot_id.is_empty());
        assert_eq!(running.difference(), None);
        for (field, said) in [
            (BootedKernel { release: "6.1.0-1".into(), ..running.clone() }, "release: found"),
            (BootedKernel { version: "#2 SMP".into(), ..running.clone() }, "version: found"),
            (BootedKernel { boot_id: "0".into(), ..running.clone() }, "boot_id: found"),
        ] {
            let found = field.difference().unwrap();
            assert!(found.starts_with(said), "{found}");
        }
    }
}
