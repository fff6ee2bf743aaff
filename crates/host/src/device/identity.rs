//! Identity of a block device: serial number, WWN, size, link, backing file.
//!
//! A name (`/dev/sdb`) and a number (8:16) are given again after a reboot, a replug or a detach. What is compared here is what
//! stays with the disk or the file behind it: serial number, WWN, size, the link by which the inventory lists it, and for a
//! loop device its backing file by file system and inode.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::LoopInfo;
use crate::Error;

/// The file behind a loop device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backing {
    /// Its path when it was looked at; for messages, not compared: it may be renamed.
    pub path: PathBuf,
    /// `st_dev` of its file system, as the loop driver says it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Where in it the device begins, in bytes.
    pub offset_bytes: u64,
}

/// Identity of a whole disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The kernel's name, such as `sdb`; for messages, not compared.
    pub kernel_name: String,
    /// Bytes on it.
    pub size_bytes: u64,
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// World wide name, or the kernel's `wwid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// The link below `/dev/disk` by which it is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathBuf>,
    /// The file behind a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<Backing>,
}

impl Identity {
    /// Looks at an open block device. `listed` is the path by which it was named.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no block device, or a partition.
    pub fn of(device: &File, listed: &Path) -> Result<Self, Error> {
        let kernel_name = kernel_name(device, listed)?;
        let block = Path::new("/sys/block").join(&kernel_name);
        let sectors = read(&block.join("size")).and_then(|text| text.parse::<u64>().ok());
        let sectors = sectors
            .ok_or_else(|| Error::Failed(format!("{}: the kernel tells no size", listed.display())))?;
        let udev = udev(device);
        let from_udev = |key: &str| {
            udev.lines().find_map(|line| {
                Some(line.strip_prefix("E:")?.strip_prefix(key)?.strip_prefix('=')?.to_owned())
            })
        };
        Ok(Identity {
            // Documentation/ABI/stable/sysfs-block: in units of 512 bytes, whatever the logical block size.
            size_bytes: sectors * 512,
            serial: read(&block.join("serial"))
                .or_else(|| read(&block.join("device/serial")))
                .or_else(|| from_udev("ID_SERIAL_SHORT"))
                .or_else(|| vital_product_data(&block.join("device/vpd_pg80"))),
            wwn: read(&block.join("wwid"))
                .or_else(|| read(&block.join("device/wwid")))
                .or_else(|| from_udev("ID_WWN")),
            link: listed.starts_with("/dev/disk").then(|| listed.to_owned()),
            backing: backing(device, &block),
            kernel_name,
        })
    }

    /// Looks at the device that a path leads to.
    ///
    /// # Errors
    /// As [`Identity::of`]; or it cannot be opened.
    pub fn at(path: &Path) -> Result<Self, Error> {
        // Looked at before it is opened: opening a pipe or a tape does something.
        let found = fs::metadata(path).map_err(Error::io("cannot look at", path))?;
        if !found.file_type().is_block_device() {
            return Err(Error::Refused(format!("{}: is no block device", path.display())));
        }
        Self::of(&File::open(path).map_err(Error::io("cannot open", path))?, path)
    }

    /// What tells another device apart from this one; `None` if all is the same.
    #[must_use]
    pub fn difference(&self, now: &Identity) -> Option<String> {
        let differ = |what: &str, before: String, now: String| {
            (before != now).then(|| format!("{what} was {before}, is {now}"))
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let backed = |backing: &Option<Backing>| match backing {
            None => "none".to_owned(),
            Some(file) => {
                format!(
                    "{} (inode {} of {}, from byte {})",
                    file.path.display(),
                    file.inode,
                    file.device,
                    file.offset_bytes
                )
            }
        };
        let same_file = match (&self.backing, &now.backing) {
            (Some(a), Some(b)) => (a.device, a.inode, a.offset_bytes) == (b.device, b.inode, b.offset_bytes),
            (a, b) => a.is_none() && b.is_none(),
        };
        differ("serial number", text(&self.serial), text(&now.serial))
            .or_else(|| differ("WWN", text(&self.wwn), text(&now.wwn)))
            .or_else(|| {
                (!same_file).then(|| {
                    format!("backing file was {}, is {}", backed(&self.backing), backed(&now.backing))
                })
            })
            .or_else(|| {
                differ("size", format!("{} bytes", self.size_bytes), format!("{} bytes", now.size_bytes))
            })
    }

    /// Why both are the same disk, reached twice; `None` if they are two.
    #[must_use]
    pub fn same_disk(&self, other: &Identity) -> Option<String> {
        if self.kernel_name == other.kernel_name {
            return Some(format!("both are /dev/{}", self.kernel_name));
        }
        // Namespaces of an NVMe controller, and units of an array, share its serial number but not their WWN.
        let (which, a, b) = match (&self.wwn, &other.wwn) {
            (Some(a), Some(b)) => ("WWN", Some(a), Some(b)),
            _ => ("serial number", self.serial.as_ref(), other.serial.as_ref()),
        };
        match (a, b) {
            (Some(a), Some(b)) if a == b => Some(format!("both have the {which} {a}")),
            _ => match (&self.backing, &other.backing) {
                (Some(a), Some(b)) if (a.device, a.inode) == (b.device, b.inode) => {
                    Some(format!("both are backed by {}", a.path.display()))
                }
                _ => None,
            },
        }
    }

    /// Whether a text that permits loss of data names this disk: its serial number, its WWN, or the name of a link below
    /// `/dev/disk` that leads to it.
    #[must_use]
    pub fn is_named_by(&self, text: &str) -> bool {
        if text.is_empty() {
            return false;
        }
        let is = |known: &Option<String>| known.as_deref() == Some(text);
        let named = Path::new(text).file_name().is_some_and(|name| {
            let linked = self.link.as_ref().and_then(|link| link.file_name());
            linked == Some(name)
                && (text == name.to_string_lossy() || self.link.as_deref() == Some(Path::new(text)))
        });
        is(&self.serial) || is(&self.wwn) || named
    }

    /// How a message calls it: link or kernel name, with serial number or backing file.
    #[must_use]
    pub fn describe(&self) -> String {
        let name = self
            .link
            .as_ref()
            .map_or_else(|| format!("/dev/{}", self.kernel_name), |link| link.display().to_string());
        match (&self.serial, &self.backing) {
            (Some(serial), _) => format!("{name} (serial number {serial})"),
            (None, Some(backing)) => format!("{name} (over {})", backing.path.display()),
            (None, None) => name,
        }
    }
}

/// The name of a whole disk in `/sys/block`.
fn kernel_name(device: &File, listed: &Path) -> Result<String, Error> {
    let metadata = device.metadata().map_err(Error::io("cannot look at", listed))?;
    if !metadata.file_type().is_block_device() {
        return Err(Error::Refused(format!("{}: is no block device", listed.display())));
    }
    let number = metadata.rdev();
    let link = PathBuf::from(format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number)));
    let target = fs::read_link(&link).map_err(Error::io("cannot read", &link))?;
    let name = target.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    if Path::new("/sys/block").join(&name).is_dir() {
        return Ok(name);
    }
    Err(Error::Refused(format!(
        "{}: is a partition. List the whole disk, whose queue a study sets",
        listed.display()
    )))
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What udev knows, if it runs: `E:KEY=VALUE` lines.
fn udev(device: &File) -> String {
    let Ok(metadata) = device.metadata() else { return String::new() };
    let number = metadata.rdev();
    fs::read_to_string(format!("/run/udev/data/b{}:{}", libc::major(number), libc::minor(number)))
        .unwrap_or_default()
}

/// The unit serial number of a SCSI disk: SPC-4, page 80h, four bytes of header.
fn vital_product_data(path: &Path) -> Option<String> {
    let page = fs::read(path).ok()?;
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = String::from_utf8_lossy(page.get(4..4 + length)?).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn backing(device: &File, block: &Path) -> Option<Backing> {
    let info = LoopInfo::of(device).ok()?;
    let path = read(&block.join("loop/backing_file")).unwrap_or_default().into();
    Some(Backing { path, device: info.device, inode: info.inode, offset_bytes: info.offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(kernel_name: &str, serial: Option<&str>, wwn: Option<&str>) -> Identity {
        Identity {
            kernel_name: kernel_name.to_owned(),
            size_bytes: 1 << 30,
            serial: serial.map(str::to_owned),
            wwn: wwn.map(str::to_owned),
            link: Some(PathBuf::from(format!("/dev/disk/by-id/x-{kernel_name}"))),
            backing: None,
        }
    }

    fn over(inode: u64, path: &str) -> Option<Backing> {
        Some(Backing { path: path.into(), device: 7, inode, offset_bytes: 0 })
    }

    #[test]
    fn a_name_and_a_number_are_not_compared_but_all_else_is() {
        let known = disk("sda", Some("A"), None);
        assert_eq!(known.difference(&disk("sdb", Some("A"), None)), None);
        assert!(
            known.difference(&disk("sda", Some("B"), None)).unwrap().contains("serial number was A, is B")
        );
        assert!(known.difference(&disk("sda", None, None)).unwrap().contains("is none"));
        assert!(known.difference(&Identity { size_bytes: 5, ..known.clone() }).unwrap().contains("size"));
        let (image, other) = (
            Identity { backing: over(1, "/a"), ..disk("loop0", None, None) },
            Identity { backing: over(2, "/b"), ..disk("loop0", None, None) },
        );
        assert!(image.difference(&other).unwrap().contains("backing file was /a"));
        assert_eq!(image.difference(&Identity { backing: over(1, "/renamed"), ..image.clone() }), None);
    }

    #[test]
    fn one_disk_on_two_paths_is_found_by_number_wwn_or_serial_number() {
        let a = disk("sda", Some("A"), Some("w1"));
        assert!(a.same_disk(&disk("sda", None, None)).is_some());
        assert!(a.same_disk(&disk("sdb", Some("B"), Some("w1"))).unwrap().contains("WWN"));
        assert!(a.same_disk(&disk("sdb", Some("A"), None)).unwrap().contains("serial number"));
        // Two namespaces of one NVMe controller.
        assert_eq!(a.same_disk(&disk("sdb", Some("A"), Some("w2"))), None);
        assert_eq!(disk("sda", None, None).same_disk(&disk("sdb", None, None)), None);
        let image = Identity { backing: over(1, "/a"), ..disk("loop0", None, None) };
        assert!(image.same_disk(&Identity { backing: over(1, "/a"), ..disk("loop1", None, None) }).is_some());
    }

    #[test]
    fn a_permission_names_serial_number_wwn_or_link() {
        let known = disk("sda", Some("S3Z"), Some("eui.1"));
        for text in ["S3Z", "eui.1", "x-sda", "/dev/disk/by-id/x-sda"] {
            assert!(known.is_named_by(text), "{text}");
        }
        for text in ["", "true", "sda", "/dev/sda", "/elsewhere/x-sda", "S3", "x-sdb"] {
            assert!(!known.is_named_by(text), "{text}");
        }
    }

    #[test]
    fn a_serial_number_is_read_from_the_vital_product_data() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("vpd_pg80");
        fs::write(&path, b"\0\x80\0\x06 AB12 ").unwrap();
        assert_eq!(vital_product_data(&path).as_deref(), Some("AB12"));
        for damaged in [&b"\0"[..], b"\0\x80\xff\xff", b"\0\x80\0\0"] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(vital_product_data(&path), None);
        }
    }

    #[test]
    fn what_is_no_block_device_is_refused() {
        assert!(Identity::at(Path::new("/dev/null")).unwrap_err().to_string().contains("no block device"));
        assert!(Identity::at(Path::new("/dev/nonesuch")).is_err());
    }
}
