//! Profiles of modelled disks: to add one, put a YAML file into `testbeds/disks/`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use weir_testbeds::DISKS;

use crate::array::StripedArray;
use crate::device::Device;
pub use crate::disk_profile::{DiskProfile, RotationMode, SeekPointProfile, TwoPieceProfile, ZoneProfile};
pub use crate::profile_types::{
    FlashProfile, FlashStart, NullProfile, Placement, Profile, QueuesProfile, RetryProfile, SlcProfile,
    SsdProfile,
};
use crate::seek::SeekCurveError;

/// Error in a profile or its use.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Unknown profile.
    #[error(
        "unknown profile `{name}`; did you mean `{nearest}`? Known profiles: {known}, or the path of a .yml file"
    )]
    Unknown {
        /// Requested name.
        name: String,
        /// Most similar name.
        nearest: &'static str,
        /// All names.
        known: String,
    },
    /// The profile file cannot be read.
    #[error("cannot read the profile {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// The file is no profile, or its device is impossible.
    #[error("{file}: {message}")]
    Parse {
        /// Path, or name of the profile.
        file: String,
        /// Problem and place.
        message: String,
    },
    /// A field is out of range.
    #[error("profile field `{field}` is {value}, expected from {least} to {most}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: f64,
        /// Least value allowed.
        least: f64,
        /// Greatest value allowed.
        most: f64,
    },
    /// Fields are missing or exclude each other.
    #[error("{problem}: {remedy}")]
    Missing {
        /// Problem.
        problem: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// A field of a zone is out of range.
    #[error("zones[{zone}]: {error}")]
    Zone {
        /// Index of the zone, from 0.
        zone: u32,
        /// Error in the zone.
        error: Box<ProfileError>,
    },
    /// Impossible number of cylinders.
    #[error(
        "a disk of {cylinders:.1} cylinders is impossible, expected from {least} to {most}. Check `capacity_gb`, `heads` and the zones' \
         `cylinders` and `sectors_per_track`"
    )]
    Cylinders {
        /// Cylinders of the profile.
        cylinders: f64,
        /// The fewest.
        least: u32,
        /// The most.
        most: f64,
    },
    /// Inconsistent seek times.
    #[error(transparent)]
    Seek(#[from] SeekCurveError),
    /// The profile cannot be scaled to that size.
    #[error(
        "size of a disk with this profile: found {capacity_bytes} bytes, expected a multiple of 512 from {least_bytes} to \
         {most_bytes} bytes ({} to {} MiB)", least_bytes.div_ceil(1 << 20), most_bytes >> 20
    )]
    Capacity {
        /// Requested size.
        capacity_bytes: u64,
        /// The least that works.
        least_bytes: u64,
        /// The most that works.
        most_bytes: u64,
    },
}

/// The names of all profiles that come with weir.
pub fn names() -> impl Iterator<Item = &'static str> {
    DISKS.names()
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
    match DISKS.text(name_or_path) {
        Some(text) => parse(name_or_path, text),
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
            format!("file too large for a profile (expected at most {MOST_BYTES} bytes). Check the path");
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
    let nearest = names().min_by_key(|known| strsim::damerau_levenshtein(known, name)).unwrap_or_default();
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
