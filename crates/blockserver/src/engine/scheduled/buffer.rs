//! Buffers for direct I/O, and replies to requests.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use fuser::{Errno, ReplyData};

use crate::engine::backing::Backing;

/// Alignment of memory that direct I/O needs on any device.
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
    /// A zeroed buffer of `length` bytes, at least one.
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

    /// Address of the bytes, for the kernel.
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

/// Data of a reply. The server's memory is borrowed: otherwise all replying threads would contend for one reference count.
pub(crate) enum Payload<B> {
    /// None.
    Nothing,
    /// Bytes of the server's memory, read when the reply is sent.
    Memory { backing: B, offset: usize, length: usize },
    /// Bytes that were read.
    Buffer(Buffer),
}

/// Borrowed, for a reply.
pub(crate) type BorrowedPayload<'a> = Payload<&'a Arc<Backing>>;
/// Data of a reply that is sent later.
pub(crate) type OwnedPayload = Payload<Arc<Backing>>;

impl BorrowedPayload<'_> {
    /// Keeps the data for later.
    pub fn keep(self) -> OwnedPayload {
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
    /// The bytes, for the kernel: bytes of the server's memory may change at the same time, as on any disk.
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

/// Function called with the data of a reply, or an errno.
pub(crate) type ReplyFn = dyn FnOnce(Result<BorrowedPayload, i32>) + Send;

/// Receiver of a reply, called once.
pub(crate) enum Reply {
    /// The kernel, for a read of the FUSE file: the most frequent case, without a memory allocation.
    Read(ReplyData),
    /// Any other receiver.
    Call(Box<ReplyFn>),
}

impl Reply {
    /// Calls `tell`.
    pub fn new(tell: impl FnOnce(Result<BorrowedPayload, i32>) + Send + 'static) -> Self {
        Reply::Call(Box::new(tell))
    }

    /// Tells it.
    pub fn send(self, outcome: Result<BorrowedPayload, i32>) {
        match (self, outcome) {
            (Reply::Read(reply), Ok(payload)) => reply.data(payload.bytes()),
            (Reply::Read(reply), Err(errno)) => reply.error(Errno::from_i32(errno)),
            (Reply::Call(tell), outcome) => tell(outcome),
        }
    }
}

/// The data of a write.
pub(crate) enum Written<'a> {
    /// In the export's buffer.
    Borrowed(&'a [u8]),
    /// In a buffer passed to the engine.
    Owned(Buffer),
}

impl Written<'_> {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Written::Borrowed(bytes) => bytes,
            Written::Owned(buffer) => buffer.bytes(),
        }
    }

    /// The data in an aligned buffer; copied only if they are in the export's buffer.
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
