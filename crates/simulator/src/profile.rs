//! The registry of device profiles: one YAML file in `testbeds/disks/`, one line in `PROFILES`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::array::StripedArray;
use crate::device::Device;
pub use crate::disk_profile::{DiskProfile, RotationMode, SeekPointProfile, TwoPieceProfile, ZoneProfile};
pub use crate::profile_types::{FlashProfile, NullProfile, Profile, SsdProfile};
use crate::seek::SeekCurveError;

/// Name and text of every profile that comes with weir.
const PROFILES: &[(&str, &str)] = &[
    ("hdd-7200", include_str!("../../../testbeds/disks/hdd-7200.yml")),
    ("hdd-15k", include_str!("../../../testbeds/disks/hdd-15k.yml")),
    ("seagate-elite3", include_str!("../../../testbeds/disks/seagate-elite3.yml")),
    ("seagate-barracuda", include_str!("../../../testbeds/disks/seagate-barracuda.yml")),
    ("quantum-atlas-ii", include_str!("../../../testbeds/disks/quantum-atlas-ii.yml")),
    ("seagate-cheetah", include_str!("../../../testbeds/disks/seagate-cheetah.yml")),
    ("hp-97560", include_str!("../../../testbeds/disks/hp-97560.yml")),
    ("hp-2204", include_str!("../../../testbeds/disks/hp-2204.yml")),
    ("seagate-st340810a", include_str!("../../../testbeds/disks/seagate-st340810a.yml")),
    ("seagate-barracuda-validated", include_str!("../../../testbeds/disks/seagate-barracuda-validated.yml")),
    ("hp-c2247a", include_str!("../../../testbeds/disks/hp-c2247a.yml")),
    ("hp-c3323a", include_str!("../../../testbeds/disks/hp-c3323a.yml")),
    ("dec-rz26", include_str!("../../../testbeds/disks/dec-rz26.yml")),
    ("ssd-nvme", include_str!("../../../testbeds/disks/ssd-nvme.yml")),
    ("ssd-sata", include_str!("../../../testbeds/disks/ssd-sata.yml")),
    ("flash-slow", include_str!("../../../testbeds/disks/flash-slow.yml")),
    ("null", include_str!("../../../testbeds/disks/null.yml")),
];

/// What is wrong with a profile or with what is asked of it.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No profile has that name.
    #[error(
        "unknown profile `{name}`; did you mean `{nearest}`? There are: {known}, or the path of a .yml file"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name most like it.
        nearest: &'static str,
        /// All names.
        known: String,
    },
    /// The profile file cannot be read.
    #[error("cannot read the profile {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The profile file is not a profile, or of a device that cannot be.
    #[error("{file}: {message}")]
    Parse {
        /// Path, or name of the profile.
        file: String,
        /// What and where.
        message: String,
    },
    /// A field is out of range.
    #[error("profile field `{field}` is {value}; it must be from {least} to {most}")]
    Field {
        /// Which.
        field: &'static str,
        /// Its value.
        value: f64,
        /// Least value allowed.
        least: f64,
        /// Greatest value allowed.
        most: f64,
    },
    /// Fields are missing or exclude each other.
    #[error("{problem}; {remedy}")]
    Missing {
        /// What is wrong.
        problem: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A field of a zone is out of range.
    #[error("zones[{zone}]: {error}")]
    Zone {
        /// Which zone, from 0.
        zone: u32,
        /// What of it.
        error: Box<ProfileError>,
    },
    /// No such disk can be.
    #[error(
        "a disk of {cylinders:.1} cylinders is not possible; there must be from {least} to {most}: check `capacity_gb`, \
         `heads` and the zones' `cylinders` and `sectors_per_track`"
    )]
    Cylinders {
        /// What follows from the profile.
        cylinders: f64,
        /// The fewest.
        least: u32,
        /// The most.
        most: f64,
    },
    /// The seek times do not fit together.
    #[error(transparent)]
    Seek(#[from] SeekCurveError),
    /// The profile cannot be scaled to that size.
    #[error(
        "a device of {capacity_bytes} bytes is not possible with this profile: choose a multiple of 512 from {least_bytes} \
         to {most_bytes} bytes ({} to {} MiB) for each disk", least_bytes.div_ceil(1 << 20), most_bytes >> 20
    )]
    Capacity {
        /// What was asked for.
        capacity_bytes: u64,
        /// The least that works.
        least_bytes: u64,
        /// The most that works.
        most_bytes: u64,
    },
}

/// The names of all profiles that come with weir.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

/// Loads a profile by its name, or from a file if the name has a `/` or ends in `.yml` or `.yaml`.
///
/// # Errors
/// [`ProfileError`]: unknown name, unreadable file, text that is not a profile, or a device that cannot be.
pub fn load(name_or_path: &str) -> Result<Profile, ProfileError> {
    if name_or_path.contains('/') || name_or_path.ends_with(".yml") || name_or_path.ends_with(".yaml") {
        let path = Path::new(name_or_path);
        let text = read(path).map_err(|error| ProfileError::Read { path: path.to_path_buf(), error })?;
        return parse(name_or_path, &text);
    }
    match PROFILES.iter().find(|(name, _)| *name == name_or_path) {
        Some((name, text)) => parse(name, text),
        None => Err(unknown(name_or_path)),
    }
}

/// Bytes of the largest profile.
const MOST_BYTES: u64 = 1 << 20;

/// The text of a file, as far as it can be a profile.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MOST_BYTES {
        let message =
            format!("it is longer than {MOST_BYTES} bytes, which no profile is: name the right file");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

fn parse(file: &str, text: &str) -> Result<Profile, ProfileError> {
    let wrong = |message: String| ProfileError::Parse { file: file.to_owned(), message };
    let profile: Profile = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
    profile.check().map_err(|error| wrong(error.to_string()))?;
    Ok(profile)
}

/// Reads the text of a profile, and makes a small device of it.
#[doc(hidden)]
pub fn fuzzing(text: &str) {
    if let Ok(profile) = parse("fuzzed.yml", text) {
        let _ = profile.build(64 << 20);
    }
}

fn unknown(name: &str) -> ProfileError {
    let nearest =
        names().min_by_key(|known| strsim::damerau_levenshtein(known, name)).unwrap_or_else(|| PROFILES[0].0);
    let known = names().collect::<Vec<_>>().join(", ");
    ProfileError::Unknown { name: name.to_owned(), nearest, known }
}

/// Makes a striped array of `devices` devices of one profile, `capacity_bytes` altogether; one device is just that device.
///
/// # Errors
/// As [`Profile::build`].
pub fn build_array(
    profile: &Profile,
    devices: u32,
    stripe_unit_bytes: u64,
    capacity_bytes: u64,
) -> Result<Box<dyn Device>, ProfileError> {
    if devices <= 1 {
        return profile.build(capacity_bytes);
    }
    let each_bytes = StripedArray::device_bytes(capacity_bytes, u64::from(devices), stripe_unit_bytes);
    let built = (0..devices).map(|_| profile.build(each_bytes)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(StripedArray::new(built, stripe_unit_bytes, capacity_bytes)))
}
