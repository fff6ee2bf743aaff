//! Buffers for direct I/O, and the answers to requests.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use fuser::{Errno, ReplyData};

use crate::engine::backing::Backing;

/// What direct I/O wants of addresses in memory on any device.
const ALIGNMENT: usize = 4096;

/// Page-aligned bytes.
pub(crate) struct Buffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is owned by the value and has no ties to a thread.
unsafe impl Send for Buffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// So many zero bytes, at least one.
    pub fn new(length: usize) -> io::Result<Self> {
        let layout = Self::layout(length)?;
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Buffer { start, length })
    }

    fn layout(length: usize) -> io::Result<Layout> {
        Layout::from_size_align(length.max(1), ALIGNMENT).map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is of that length, and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Where they are, for the kernel to read or write.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(layout) = Self::layout(self.length) {
            // SAFETY: allocated with the same layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// The data of an answer. The server's memory is lent: all threads that answer would else count on one word who has it.
pub(crate) enum Payload<B> {
    /// None.
    Nothing,
    /// Bytes of the server's own memory, which are read when the answer is sent.
    Memory { backing: B, offset: usize, length: usize },
    /// Bytes that were read.
    Buffer(Buffer),
}

/// As a reply gets them.
pub(crate) type Lent<'a> = Payload<&'a Arc<Backing>>;
/// For an answer that is sent later.
pub(crate) type Kept = Payload<Arc<Backing>>;

impl Lent<'_> {
    /// For later.
    pub fn keep(self) -> Kept {
        match self {
            Payload::Nothing => Payload::Nothing,
            Payload::Memory { backing, offset, length } => {
                Payload::Memory { backing: Arc::clone(backing), offset, length }
            }
            Payload::Buffer(buffer) => Payload::Buffer(buffer),
        }
    }
}

impl<B: AsRef<Backing>> Payload<B> {
    /// The bytes, to be given to the kernel: those of the server's memory may change meanwhile, as on any disk.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Nothing => &[],
            Payload::Memory { backing, offset, length } => match backing.as_ref() {
                Backing::Memory(memory) => memory.bytes(*offset, *length),
                Backing::File(_) => &[],
            },
            Payload::Buffer(buffer) => buffer.bytes(),
        }
    }
}

/// Is called with what a request is answered with, or the errno that it failed with.
pub(crate) type Tell = dyn FnOnce(Result<Lent, i32>) + Send;

/// Whoever is told it, once.
pub(crate) enum Reply {
    /// The kernel, of a read of the FUSE file. Most requests are that: it needs no memory of its own.
    Read(ReplyData),
    /// Anybody.
    Call(Box<Tell>),
}

impl Reply {
    /// Calls `tell`.
    pub fn new(tell: impl FnOnce(Result<Lent, i32>) + Send + 'static) -> Self {
        Reply::Call(Box::new(tell))
    }

    /// Tells it.
    pub fn send(self, outcome: Result<Lent, i32>) {
        match (self, outcome) {
            (Reply::Read(reply), Ok(payload)) => reply.data(payload.bytes()),
            (Reply::Read(reply), Err(errno)) => reply.error(Errno::from_i32(errno)),
            (Reply::Call(tell), outcome) => tell(outcome),
        }
    }
}

/// The data of a write.
pub(crate) enum Written<'a> {
    /// Of the export's own buffer.
    Borrowed(&'a [u8]),
    /// Given away.
    Owned(Buffer),
}

impl Written<'_> {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Written::Borrowed(bytes) => bytes,
            Written::Owned(buffer) => buffer.bytes(),
        }
    }

    /// The data in aligned memory of their own: a copy only where they have none.
    pub fn into_buffer(self) -> io::Result<Buffer> {
        match self {
            Written::Owned(buffer) => Ok(buffer),
            Written::Borrowed(bytes) => {
                let mut buffer = Buffer::new(bytes.len())?;
                buffer.bytes_mut().copy_from_slice(bytes);
                Ok(buffer)
            }
        }
    }
}
