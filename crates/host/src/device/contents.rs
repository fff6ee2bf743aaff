//! Content of a disk: blank, a signature, or data; and making the disk blank.
//!
//! Tools that look for signatures do not see everything: a backup GPT, a mirror superblock, a file system without its primary
//! superblock, or plain data. Blank is what [`check_blank`] says and nothing else.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use super::claim::{Claim, STDIN};
use crate::Error;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// How much is looked at from both ends. The mirror superblock of btrfs begins at exactly 64 MiB.
const ENDS_BYTES: u64 = 65 * MIB;
/// Places between the ends.
const SAMPLES: u64 = 256;
/// Bytes that are looked at in each.
const SAMPLE_BYTES: u64 = 64 * KIB;
/// Everything begins and ends at a multiple of this, which no disk's logical block exceeds.
const ALIGNMENT: u64 = 4 * KIB;
/// How much is read or written at a time.
const CHUNK_BYTES: u64 = MIB;
/// Later copies of the superblock of btrfs, from its on-disk format (`BTRFS_SUPER_MIRROR`).
const BTRFS_COPIES: [u64; 2] = [256 * GIB, 1 << 50];
/// Block groups of ext2 to ext4 that hold copies of the superblock with `sparse_super`: 1 and powers of 3, 5 and 7.
const EXT_GROUPS: [u64; 16] = [1, 3, 5, 7, 9, 25, 27, 49, 81, 125, 243, 343, 625, 729, 2187, 2401];
/// Bytes of such a group of 4 KiB blocks; groups of smaller blocks lie within the first 65 MiB.
const EXT_GROUP_BYTES: u64 = 128 * MIB;

/// A signature on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its kind, in the words of wipefs(8): `ext4`, `gpt`, `LVM2_member`.
    pub kind: String,
    /// The UUID that goes with it.
    pub uuid: Option<String>,
}

/// All signatures that wipefs(8) finds, by place.
///
/// # Errors
/// [`Error::Failed`] if it is not installed, or fails for whatever reason.
pub fn signatures(claim: &Claim) -> Result<Vec<Signature>, Error> {
    let text = run(claim, "wipefs", &["--no-act", "--noheadings", "--output", "TYPE,UUID"])?;
    let signature = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        Some(Signature { kind: fields.next()?.to_owned(), uuid: fields.next().map(str::to_owned) })
    };
    Ok(text.lines().filter_map(signature).collect())
}

/// Checks that a disk is blank: no signature, and zeros at both ends (65 MiB each), where file systems keep copies of their
/// superblocks, and at 256 places between.
///
/// # Errors
/// [`Error::Refused`] with the found content; [`Error::Failed`] or [`Error::Io`] if the disk cannot be read.
pub fn check_blank(claim: &Claim) -> Result<(), Error> {
    let refuse = |found: String| {
        let identity = claim.identity();
        let name = identity
            .serial
            .as_ref()
            .or(identity.wwn.as_ref())
            .cloned()
            .or_else(|| Some(identity.link.as_ref()?.file_name()?.to_string_lossy().into_owned()));
        let remedy = name.map_or_else(
            || "wipe it first, if that may be lost".to_owned(),
            |name| format!("if that may be lost, the inventory says so for this disk: `overwrite: {name}`"),
        );
        Error::Refused(format!(
            "{} is not blank: {found}. Nothing on it was changed; {remedy}",
            identity.describe()
        ))
    };
    let found = signatures(claim)?;
    if !found.is_empty() {
        let kinds: Vec<&str> = found.iter().map(|signature| signature.kind.as_str()).collect();
        return Err(refuse(format!("it carries {}", kinds.join(", "))));
    }
    let mut buffer = vec![0; CHUNK_BYTES as usize];
    for (from, to) in places(claim.identity().size_bytes) {
        let mut at = from;
        while at < to {
            let part = &mut buffer[..(to - at).min(CHUNK_BYTES) as usize];
            claim.file().read_exact_at(part, at).map_err(Error::io("cannot read", claim.listed()))?;
            if let Some(byte) = part.iter().position(|byte| *byte != 0) {
                return Err(refuse(format!("it holds data at byte {}", at + byte as u64)));
            }
            at += part.len() as u64;
        }
    }
    forget(claim);
    Ok(())
}

/// Makes a disk blank in the sense of [`check_blank`]: erases every signature, and zeros the places that it reads. The caller has
/// checked that the content is weir's own.
///
/// A label with `token` is written first and goes last, so that the disk is known to be weir's after a crash in between, when
/// its signature is gone and its data are not.
///
/// # Errors
/// The exclusive claim is not held; the disk cannot be written.
pub fn make_blank(claim: &Claim, token: &str) -> Result<(), Error> {
    if !claim.is_exclusive() {
        return Err(Error::Failed(format!("{} is not held", claim.identity().describe())));
    }
    write_label(claim, token)?;
    // --force: not a second exclusive claim, which this process has.
    run(claim, "wipefs", &["--all", "--force", "--quiet"])?;
    let synchronise = || claim.file().sync_all().map_err(Error::io("cannot synchronise", claim.listed()));
    let label = label_offset(claim);
    for (from, to) in places(claim.identity().size_bytes) {
        zero(claim, from, to.min(label).saturating_sub(from))?;
    }
    synchronise()?;
    zero(claim, label, claim.identity().size_bytes - label)?;
    synchronise()?;
    forget(claim);
    Ok(())
}

/// Writes a mark of one block of 4 KiB at the end of a disk. It identifies data without a file system as weir's.
///
/// # Errors
/// The disk cannot be written.
pub fn write_label(claim: &Claim, token: &str) -> Result<(), Error> {
    let mut block = vec![0; ALIGNMENT as usize];
    let text = label(token);
    block[..text.len()].copy_from_slice(text.as_bytes());
    claim
        .file()
        .write_all_at(&block, label_offset(claim))
        .and_then(|()| claim.file().sync_all())
        .map_err(Error::io("cannot write", claim.listed()))
}

/// Whether the mark of [`write_label`] is there.
///
/// # Errors
/// The disk cannot be read.
pub fn has_label(claim: &Claim, token: &str) -> Result<bool, Error> {
    let text = label(token);
    let mut found = vec![0; text.len()];
    let read = claim.file().read_exact_at(&mut found, label_offset(claim));
    read.map_err(Error::io("cannot read", claim.listed()))?;
    Ok(found == text.as_bytes())
}

/// Bytes at the end of a disk that [`write_label`] needs.
pub const LABEL_BYTES: u64 = ALIGNMENT;

fn label(token: &str) -> String {
    format!("weir: a run writes to this disk without a file system; {token}\n")
}

fn label_offset(claim: &Claim) -> u64 {
    claim.identity().size_bytes / ALIGNMENT * ALIGNMENT - ALIGNMENT
}

/// Ranges that are looked at, `from..to` in bytes, in order. The same for disks of the same size: what [`make_blank`] zeros is
/// exactly what [`check_blank`] reads.
fn places(size_bytes: u64) -> Vec<(u64, u64)> {
    if size_bytes <= 2 * ENDS_BYTES + SAMPLES * SAMPLE_BYTES {
        return vec![(0, size_bytes)];
    }
    let tail = (size_bytes - ENDS_BYTES) / ALIGNMENT * ALIGNMENT;
    let mut places = vec![(0, ENDS_BYTES), (tail, size_bytes)];
    let mut add = |offset: u64| {
        let from = offset / ALIGNMENT * ALIGNMENT;
        if from >= ENDS_BYTES && from + SAMPLE_BYTES <= tail {
            places.push((from, from + SAMPLE_BYTES));
        }
    };
    BTRFS_COPIES.into_iter().for_each(&mut add);
    EXT_GROUPS.into_iter().for_each(|group| add(group * EXT_GROUP_BYTES));
    // mkfs.xfs makes four allocation groups, each with a superblock, unless the disk is huge.
    let quarter = size_bytes.div_ceil(ALIGNMENT).div_ceil(4) * ALIGNMENT;
    (1..4).for_each(|group| add(group * quarter));
    let stride = (tail - ENDS_BYTES) / SAMPLES;
    for sample in 0..SAMPLES {
        // Not at regular distances, which something else may have, too.
        let shift = mix(size_bytes ^ sample) % (stride - SAMPLE_BYTES).max(1);
        add(ENDS_BYTES + sample * stride + shift);
    }
    places.sort_unstable();
    places
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), one step.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn zero(claim: &Claim, from: u64, length: u64) -> Result<(), Error> {
    /// `BLKZEROOUT` of `include/uapi/linux/fs.h`.
    const BLKZEROOUT: libc::Ioctl = 0x127F;
    if length == 0 {
        return Ok(());
    }
    let range = [from, length];
    // SAFETY: the descriptor is open, and `range` is the pair of numbers that BLKZEROOUT reads.
    match unsafe { libc::ioctl(claim.file().as_raw_fd(), BLKZEROOUT, &range) } {
        0 => Ok(()),
        _ => Err(Error::io("cannot write zeros to", claim.listed())(std::io::Error::last_os_error())),
    }
}

/// Drops the read pages from the page cache.
fn forget(claim: &Claim) {
    let _ = crate::page_cache::drop_file(claim.file());
}

fn run(claim: &Claim, program: &str, arguments: &[&str]) -> Result<String, Error> {
    let output = claim.command(program)?.args(arguments).arg(STDIN).output();
    let output = output.map_err(|error| {
        let remedy = if error.kind() == std::io::ErrorKind::NotFound { "; install util-linux" } else { "" };
        Error::Failed(format!("{program}: {error}{remedy}"))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Failed(format!(
        "{program} on {} failed ({}): {}",
        claim.identity().describe(),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ordered_inside_the_disk_and_cover_copies_of_superblocks() {
        for size in
            [4096, 100 * MIB, 146 * MIB + 4096, 147 * MIB, 700 * MIB + 512, 4 * GIB, 300 * GIB, 20_000 * GIB]
        {
            let places = places(size);
            assert!(places.iter().all(|(from, to)| from < to && *to <= size), "{size}");
            assert!(places.iter().all(|(from, _)| from % ALIGNMENT == 0), "{size}");
            assert!(places.is_sorted());
            assert_eq!(places.first().map(|(from, _)| *from), Some(0));
            assert_eq!(places.iter().map(|(_, to)| *to).max(), Some(size));
            let covers = |offset: u64| places.iter().any(|(from, to)| (*from..*to).contains(&offset));
            assert!(covers(0) && covers(size - 1));
            assert!(size <= 64 * MIB || covers(64 * MIB), "a mirror superblock of btrfs");
            if size > 300 * MIB {
                assert!(covers(128 * MIB), "the first copy of ext4's superblock");
            }
            if size > 2 * ENDS_BYTES + SAMPLES * SAMPLE_BYTES {
                assert!(places.len() as u64 >= 2 + SAMPLES, "{size}: {}", places.len());
            }
        }
        assert_eq!(places(300 * GIB), places(300 * GIB));
    }
}
