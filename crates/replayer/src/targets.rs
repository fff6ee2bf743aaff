//! Targets of classes, and mapping of requests to transfers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_records::{Op, Request};
use weir_vocabulary::IoPriority;

use crate::target::{Access, OpenFile, Target};
use crate::{Error, Kind};

/// Largest single transfer.
const MAX_TRANSFER_BYTES: u64 = 1 << 30;

/// Route of a class's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// A block device, a file, or a directory of files named by [`crate::file_name`].
    pub path: PathBuf,
    /// Name in the column `device` of records; the path if absent.
    pub name: Option<String>,
    /// Added to every offset: classes can share a device in separate regions.
    pub base_offset_bytes: u64,
    /// I/O priority of the requests; `None` for that of the process.
    pub priority: Option<IoPriority>,
}

impl Route {
    /// A route to the beginning of `path`, at the priority of the process.
    pub fn to(path: impl Into<PathBuf>) -> Self {
        Route { path: path.into(), name: None, base_offset_bytes: 0, priority: None }
    }
}

/// All routes of a stream, and permissions on their targets.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Route of classes without their own.
    pub default: Option<Route>,
    /// Routes by class.
    pub classes: BTreeMap<String, Route>,
    /// Whether writes are allowed; otherwise a stream with a write is refused, and targets are opened for reading only.
    pub allow_writes: bool,
    /// Use the page cache, also if direct transfers work.
    pub buffered: bool,
    /// The caller has claimed the device, or permits several writers.
    pub shared: bool,
}

/// The open targets of a stream.
///
/// Writable block devices are opened exclusively: a mounted one is refused.
#[derive(Debug)]
pub struct Targets {
    pub(crate) targets: Vec<Target>,
    /// Name of each target in records.
    pub(crate) names: Vec<Arc<str>>,
    default: Option<Resolved>,
    classes: HashMap<String, Resolved>,
    allow_writes: bool,
    /// Whether block devices take discards.
    can_discard: bool,
}

#[derive(Debug, Clone, Copy)]
struct Resolved {
    target: usize,
    base_offset_bytes: u64,
    priority: Option<IoPriority>,
}

/// Transfer of a request, as the kernel gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Index of the target.
    pub target: usize,
    pub fd: RawFd,
    /// Place of the file among those of all targets.
    pub file: u32,
    pub op: Op,
    /// First byte of the transfer: the request's position rounded down to the alignment.
    pub offset: u64,
    /// Length of the transfer: the request's, rounded outwards to the alignment; 0 if it transfers no data.
    pub length: u32,
    /// Bytes of the range that is discarded or made zero.
    pub range_bytes: u64,
    /// Whether the target is a block device.
    pub to_device: bool,
    /// Bytes of a successful transfer: less than `length` only at an unaligned end of a file.
    pub expected: u32,
    /// Bytes between `offset` and the request's position.
    pub skip: u32,
    pub priority: u16,
    /// Whether alignment enlarged the request.
    pub rounded: bool,
}

impl Targets {
    /// Opens every target that a layout names.
    ///
    /// # Errors
    /// A target is missing, of the wrong kind, in use, or may not be opened this way.
    pub fn open(layout: &Layout) -> Result<Self, Error> {
        let access =
            Access { write: layout.allow_writes, direct: !layout.buffered, exclusive: !layout.shared };
        let mut opened = Targets {
            targets: Vec::new(),
            names: Vec::new(),
            default: None,
            classes: HashMap::new(),
            allow_writes: layout.allow_writes,
            can_discard: kernel().is_none_or(|kernel| kernel >= DISCARDS_SINCE),
        };
        if let Some(route) = &layout.default {
            opened.default = Some(opened.route(route, access)?);
        }
        for (class, route) in &layout.classes {
            let resolved = opened.route(route, access)?;
            opened.classes.insert(class.clone(), resolved);
        }
        Ok(opened)
    }

    fn route(&mut self, route: &Route, access: Access) -> Result<Resolved, Error> {
        let target = match self.targets.iter().position(|target| same(&target.path, &route.path)) {
            // An exclusive device cannot be opened a second time.
            Some(index) => index,
            None => {
                let earlier = self.targets.iter().map(|target| target.files.len()).sum::<usize>() as u32;
                self.targets.push(Target::open(&route.path, access, earlier)?);
                let name = route.name.as_deref().map(Cow::Borrowed);
                self.names.push(Arc::from(name.unwrap_or_else(|| route.path.to_string_lossy())));
                self.targets.len() - 1
            }
        };
        Ok(Resolved { target, base_offset_bytes: route.base_offset_bytes, priority: route.priority })
    }

    /// Descriptors of all files of all targets, at the places of [`Transfer::file`].
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.targets.iter().flat_map(|target| target.files.iter().map(OpenFile::fd)).collect()
    }

    /// Bytes that requests of the class and file of this one may address, and the alignment of direct transfers; `None` if it
    /// has no target.
    pub fn room(&self, request: &Request) -> Option<(u64, u64)> {
        let (route, _, file) = self.file_of(request).ok()?;
        Some((file.size_bytes.saturating_sub(route.base_offset_bytes), file.alignment_bytes))
    }

    /// Route and file of a request, and the file's place among those of all targets; or why it has none.
    fn file_of(&self, request: &Request) -> Result<(&Resolved, u32, &OpenFile), String> {
        let route = self.classes.get(&*request.class).or(self.default.as_ref()).ok_or_else(|| {
            "its class has no target. Name a target for the class, or one for all classes".to_owned()
        })?;
        let target = &self.targets[route.target];
        let path = target.path.display();
        let index = match (target.kind, request.file) {
            (Kind::Directory, Some(id)) => *target.by_id.get(&id).ok_or_else(|| {
                format!("file {id} ({}) is not in directory {path}", weir_content::file_name(id))
            })?,
            (Kind::Directory, None) => {
                return Err(format!(
                    "it names no file, but its target {path} is a directory. Instead, name a device or a file"
                ));
            }
            (Kind::BlockDevice | Kind::File, None) => 0,
            (Kind::BlockDevice | Kind::File, Some(id)) => {
                return Err(format!(
                    "it names file {id}, but its target {path} is not a directory. Instead, name a directory with {} in it",
                    weir_content::file_name(id)
                ));
            }
        };
        Ok((route, target.first_file + index as u32, &target.files[index]))
    }

    /// Transfer of a request, or why it cannot be sent.
    pub(crate) fn resolve(&self, request: &Request) -> Result<Transfer, String> {
        let (route, place, file) = self.file_of(request)?;
        let target = &self.targets[route.target];
        let path = target.path.display();
        let transfer = Transfer {
            target: route.target,
            fd: file.fd(),
            file: place,
            op: request.op,
            offset: 0,
            length: 0,
            range_bytes: 0,
            to_device: target.kind == Kind::BlockDevice,
            expected: 0,
            skip: 0,
            priority: route.priority.map_or(0, IoPriority::value),
            rounded: false,
        };
        if request.op == Op::Flush {
            return Ok(transfer);
        }
        let moves_data = request.op.data().is_some();
        let most_bytes = if moves_data { MAX_TRANSFER_BYTES } else { u64::MAX };
        if !(1..=most_bytes).contains(&request.size_bytes) {
            return Err(format!("size_bytes is {} (expected 1 to {most_bytes})", request.size_bytes));
        }
        let begin = request.offset.checked_add(route.base_offset_bytes);
        let end = begin.and_then(|begin| begin.checked_add(request.size_bytes));
        let (Some(begin), Some(end)) = (begin, end) else {
            return Err(format!("offset {} is beyond any device", request.offset));
        };
        if end > file.size_bytes {
            let name = match request.file {
                Some(id) => target.path.join(weir_content::file_name(id)).display().to_string(),
                None => path.to_string(),
            };
            return Err(format!(
                "it ends at byte {end}, past the end of {name} at {}. Use a larger target or a smaller working set",
                file.size_bytes
            ));
        }
        if request.op.changes_data() && !self.allow_writes {
            return Err(format!(
                "it is a {}, and writing was not allowed, since its target's data would be lost",
                request.op.name()
            ));
        }
        let align = file.alignment_bytes;
        if !moves_data {
            if transfer.to_device && !(begin.is_multiple_of(align) && end.is_multiple_of(align)) {
                return Err(format!(
                    "it is a {} from byte {begin} to {end}, and {path} takes multiples of {align} bytes only",
                    request.op.name()
                ));
            }
            if transfer.to_device && request.op == Op::Discard && !self.can_discard {
                return Err(format!(
                    "it is a discard of {path}, a block device, which needs Linux 6.12 or later. Replay it there, or \
                     without discards"
                ));
            }
            return Ok(Transfer { offset: begin, range_bytes: request.size_bytes, ..transfer });
        }
        let offset = begin - begin % align;
        let length = end.next_multiple_of(align) - offset;
        let expected = length.min(file.size_bytes - offset);
        if request.op.changes_data() && expected < length {
            return Err(format!(
                "it writes up to byte {end}, and direct writes to {path} must be multiples of {align} \
                 bytes, which would lengthen it; give the file a multiple of that size"
            ));
        }
        Ok(Transfer {
            offset,
            // Both are at most the largest transfer plus two alignments.
            length: length as u32,
            expected: expected as u32,
            skip: (begin - offset) as u32,
            rounded: length != request.size_bytes,
            ..transfer
        })
    }
}

/// First version of Linux in which block devices take discards through io_uring.
const DISCARDS_SINCE: (u32, u32) = (6, 12);

/// Version of the running kernel, if it can be read.
fn kernel() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether two paths are the same file, as far as is known.
fn same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;
