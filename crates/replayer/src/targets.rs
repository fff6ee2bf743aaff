//! Targets of classes, and the mapping from requests to system calls.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_records::{Op, Request};
use weir_vocabulary::IoPriority;

use crate::target::{Access, Target};
use crate::{Error, Kind};

/// The largest transfer that is handed to the kernel as one.
const MAX_TRANSFER_BYTES: u64 = 1 << 30;

/// Where the requests of a class go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// A block device, a file, or a directory of files named by [`crate::file_name`].
    pub path: PathBuf,
    /// Its name in the column `device` of records; the path if absent.
    pub name: Option<String>,
    /// Added to every offset: classes can share a device in separate regions.
    pub base_offset_bytes: u64,
    /// The priority that the requests carry; `None` for that of the process.
    pub priority: Option<IoPriority>,
}

impl Route {
    /// A route to `path` from its beginning, at the priority of the process.
    pub fn to(path: impl Into<PathBuf>) -> Self {
        Route { path: path.into(), name: None, base_offset_bytes: 0, priority: None }
    }
}

/// All routes of a stream, and what may be done to their targets.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// For the classes that have no route of their own.
    pub default: Option<Route>,
    /// By class.
    pub classes: BTreeMap<String, Route>,
    /// Without this a stream with a write in it is refused, and targets are opened for reading only.
    pub allow_writes: bool,
    /// Use the page cache even where direct transfers work.
    pub buffered: bool,
    /// Whoever starts the replay holds the device, or lets several write to it at once.
    pub shared: bool,
}

/// The open targets of a stream.
///
/// Targets opened for writing are held exclusively if they are block devices: a mounted one is refused.
#[derive(Debug)]
pub struct Targets {
    pub(crate) targets: Vec<Target>,
    /// What each target is called in the records.
    pub(crate) names: Vec<Arc<str>>,
    default: Option<Resolved>,
    classes: HashMap<String, Resolved>,
    allow_writes: bool,
}

#[derive(Debug, Clone, Copy)]
struct Resolved {
    target: usize,
    base_offset_bytes: u64,
    priority: Option<IoPriority>,
}

/// A request as the kernel is asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Index of the target.
    pub target: usize,
    pub fd: RawFd,
    pub op: Op,
    /// Where the transfer begins in the file: the request's position rounded down to the alignment.
    pub offset: u64,
    /// Bytes asked for: the request's, rounded outwards to the alignment.
    pub length: u32,
    /// Bytes that a successful transfer moves: less than `length` only at an unaligned end of a file.
    pub expected: u32,
    /// Bytes between `offset` and the position that the request asked for.
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
            // An exclusive device could not be opened a second time, and need not be.
            Some(index) => index,
            None => {
                self.targets.push(Target::open(&route.path, access)?);
                let name = route.name.as_deref().map(Cow::Borrowed);
                self.names.push(Arc::from(name.unwrap_or_else(|| route.path.to_string_lossy())));
                self.targets.len() - 1
            }
        };
        Ok(Resolved { target, base_offset_bytes: route.base_offset_bytes, priority: route.priority })
    }

    /// What a request becomes, or the reason why it cannot be sent.
    pub(crate) fn resolve(&self, request: &Request) -> Result<Transfer, String> {
        let route = self.classes.get(&*request.class).or(self.default.as_ref()).ok_or_else(|| {
            "its class has no target; name one for the class, or a target for all".to_owned()
        })?;
        let target = &self.targets[route.target];
        let path = target.path.display();
        let file = match (target.kind, request.file) {
            (Kind::Directory, Some(id)) => {
                let index = target.by_id.get(&id).ok_or_else(|| {
                    format!("file {id} ({}) is not in directory {path}", weir_content::file_name(id))
                })?;
                &target.files[*index]
            }
            (Kind::Directory, None) => {
                return Err(format!(
                    "it names no file but its target {path} is a directory; name a device or a file instead"
                ));
            }
            (Kind::BlockDevice | Kind::File, None) => &target.files[0],
            (Kind::BlockDevice | Kind::File, Some(id)) => {
                return Err(format!(
                    "it asks for file {id} but its target {path} is not a directory; name a directory with {} in it",
                    weir_content::file_name(id)
                ));
            }
        };
        if request.size_bytes == 0 || request.size_bytes > MAX_TRANSFER_BYTES {
            return Err(format!(
                "size_bytes is {}; a transfer has 1 to {MAX_TRANSFER_BYTES} bytes",
                request.size_bytes
            ));
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
                "it ends at byte {end}, past the end of {name} at {}; use a larger target or a smaller working set",
                file.size_bytes
            ));
        }
        let align = file.alignment_bytes;
        let offset = begin - begin % align;
        let length = end.next_multiple_of(align) - offset;
        let expected = length.min(file.size_bytes - offset);
        if request.op == Op::Write {
            if !self.allow_writes {
                return Err(
                    "it writes, and writing was not allowed; its target's data would be lost".to_owned()
                );
            }
            if expected < length {
                return Err(format!(
                    "it writes up to byte {end}, and {path} can be written directly only in multiples of {align} \
                     bytes, which would lengthen it; give the file a multiple of that size"
                ));
            }
        }
        Ok(Transfer {
            target: route.target,
            fd: file.fd(),
            op: request.op,
            offset,
            // Both are at most the largest transfer plus two alignments.
            length: length as u32,
            expected: expected as u32,
            skip: (begin - offset) as u32,
            priority: route.priority.map_or(0, IoPriority::value),
            rounded: length != request.size_bytes,
        })
    }
}

/// Whether two paths lead to the same file, as far as can be told.
fn same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
#[path = "targets_tests.rs"]
mod tests;
