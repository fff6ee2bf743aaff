//! Specification of a block server: the file that `weir serve` reads.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_simulator::Device;
use weir_simulator::profile::{self, Profile};
use weir_specs::Document;

use crate::engine::scheduled::{ExportKind, SchedulingSpec};
use crate::error::Error;

/// One modelled block device.
///
/// ```yaml
/// name: shared
/// profile: hdd-7200
/// heads: 4
/// stripe_unit_kib: 64
/// size_mib: 4096
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServeSpec {
    /// Name of the device: letters, digits, `-` and `_`, at most 40.
    pub name: String,
    /// A device profile's name, or the path of a profile file (relative to the spec file).
    pub profile: String,
    /// Devices of that profile behind the one block device, striped.
    #[serde(default = "one")]
    pub heads: u32,
    /// Stripe unit in KiB, if there is more than one head.
    #[serde(default = "default_stripe_unit_kib")]
    pub stripe_unit_kib: u32,
    /// Size of the block device in MiB.
    pub size_mib: u64,
    /// Where the data are: `memory`, or the path of a file (relative to the spec file), which is made if it does not exist.
    #[serde(default = "memory")]
    pub backing: String,
    /// A policy in front of the heads. Without one they serve in the order of their own queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<SchedulingSpec>,
}

fn one() -> u32 {
    1
}

fn default_stripe_unit_kib() -> u32 {
    64
}

fn memory() -> String {
    "memory".to_owned()
}

impl ServeSpec {
    /// Reads and checks a spec file.
    ///
    /// # Errors
    /// [`Error::Spec`] or [`Error::Profile`]: the file cannot be read, is not a specification, or has an impossible value.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let file = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::from_document(&Document::read(path)?, &file, folder)
    }

    /// Parses and checks a spec; `file` is its name in errors, `folder` the base of its relative paths.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, Error> {
        Self::from_document(&Document::from_text(Path::new(file), text)?, file, folder)
    }

    fn from_document(document: &Document, file: &str, folder: &Path) -> Result<Self, Error> {
        let mut spec: Self = document.parse_all()?;
        if spec.profile.contains('/') || spec.profile.ends_with(".yml") || spec.profile.ends_with(".yaml") {
            spec.profile = folder.join(&spec.profile).display().to_string();
        }
        if spec.backing.contains('/') {
            spec.backing = folder.join(&spec.backing).display().to_string();
        }
        for target in spec.live.iter_mut().flat_map(|live| &mut live.targets) {
            *target = folder.join(&*target);
        }
        spec.check(file)?;
        Ok(spec)
    }

    /// Checks the spec; `file` is its name in errors.
    ///
    /// # Errors
    /// [`Error::Spec`] or [`Error::Profile`].
    pub fn check(&self, file: &str) -> Result<(), Error> {
        let bad = |message: String| Err(Error::Spec { file: file.to_owned(), message });
        if let Some(problem) = weir_specs::name_problem(&self.name) {
            return bad(format!("field `name` {problem}"));
        }
        if !(1..=64).contains(&self.heads) {
            return bad(format!("field `heads` is {} (expected 1 to 64)", self.heads));
        }
        if !(4..=65_536).contains(&self.stripe_unit_kib) {
            return bad(format!("field `stripe_unit_kib` is {} (expected 4 to 65536)", self.stripe_unit_kib));
        }
        if !(1..=1 << 24).contains(&self.size_mib) {
            return bad(format!("field `size_mib` is {} (expected 1 to 16777216)", self.size_mib));
        }
        if self.backing != "memory" && !self.backing.contains('/') {
            let hint = if strsim::levenshtein(&self.backing, "memory") <= 3 {
                "; did you mean `memory`?"
            } else {
                ""
            };
            return bad(format!(
                "field `backing` is `{}` (expected `memory`, or a path with a `/` such as ./disk.img){hint}",
                self.backing
            ));
        }
        self.build(file)?;
        self.live.as_ref().map_or(Ok(()), |live| live.check(self, file))
    }

    /// The profile that the spec names.
    pub(crate) fn load_profile(&self, file: &str) -> Result<Profile, Error> {
        profile::load(&self.profile).map_err(|error| Error::Profile { file: file.to_owned(), error })
    }

    /// Whether the device is a rotational disk.
    pub(crate) fn is_disk(&self) -> bool {
        matches!(profile::load(&self.profile), Ok(Profile::Disk(_)))
    }

    /// A new device model in its first state.
    pub(crate) fn build(&self, file: &str) -> Result<Box<dyn Device>, Error> {
        let profile = self.load_profile(file)?;
        let unit_bytes = u64::from(self.stripe_unit_kib) * 1024;
        profile::build_array(&profile, self.heads, unit_bytes, self.size_bytes())
            .map_err(|error| Error::Profile { file: file.to_owned(), error })
    }

    /// Whether the server has this export. Without a scheduler its export is a loop device.
    pub fn has_export(&self, kind: ExportKind) -> bool {
        self.live.as_ref().map_or(kind == ExportKind::Loop, |live| live.exports.contains(&kind))
    }

    /// Size of the device in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_mib << 20
    }

    /// The file that holds the data, or `None` for memory.
    pub fn backing_file(&self) -> Option<PathBuf> {
        (self.backing != "memory").then(|| PathBuf::from(&self.backing))
    }
}
