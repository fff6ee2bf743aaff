//! Buffers for direct I/O: aligned, pooled and bounded.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment in memory: satisfies every device, and no transfer straddles a page needlessly.
const ALIGNMENT: usize = 4096;

/// Memory of a power-of-two size, aligned to 4096 bytes.
#[derive(Debug)]
pub(crate) struct Buffer {
    data: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory, as a Box<[u8]> would.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A zeroed buffer of at least `size_bytes`.
    ///
    /// Out of memory ends the process, as for any other allocation.
    pub fn new(size_bytes: usize) -> Self {
        let size = size_bytes.max(ALIGNMENT).next_power_of_two();
        // The size is a power of two of at least the alignment, so rounding it up is the identity.
        let Ok(layout) = Layout::from_size_align(size, ALIGNMENT) else {
            handle_alloc_error(Layout::new::<u8>())
        };
        // SAFETY: the layout has a nonzero size.
        let data = unsafe { alloc_zeroed(layout) };
        let Some(data) = NonNull::new(data) else { handle_alloc_error(layout) };
        Buffer { data, layout }
    }

    pub fn size_bytes(&self) -> usize {
        self.layout.size()
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.data.as_ptr()
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the memory was allocated and zeroed with this size, and is borrowed mutably here.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.data.as_ptr(), self.layout) };
    }
}

/// Buffers by size class, kept for reuse.
pub(crate) struct Pool {
    free: Vec<Vec<Buffer>>,
    allocated_bytes: usize,
    limit_bytes: usize,
}

impl Pool {
    /// A pool that hands out at most `limit_bytes` in sum, but always at least one buffer.
    pub fn new(limit_bytes: usize) -> Self {
        Pool { free: (0..usize::BITS).map(|_| Vec::new()).collect(), allocated_bytes: 0, limit_bytes }
    }

    /// A buffer of at least `size_bytes`; `None` while the limit is reached.
    pub fn take(&mut self, size_bytes: usize) -> Option<Buffer> {
        let size = size_bytes.max(ALIGNMENT).next_power_of_two();
        if let Some(buffer) = self.free[size.trailing_zeros() as usize].pop() {
            return Some(buffer);
        }
        if self.allocated_bytes + size > self.limit_bytes {
            // Idle buffers of other sizes may use up the limit.
            for class in &mut self.free {
                self.allocated_bytes -= class.drain(..).map(|idle| idle.size_bytes()).sum::<usize>();
            }
            if self.allocated_bytes > 0 && self.allocated_bytes + size > self.limit_bytes {
                return None;
            }
        }
        self.allocated_bytes += size;
        Some(Buffer::new(size))
    }

    /// Returns a buffer to the pool.
    pub fn give(&mut self, buffer: Buffer) {
        self.free[buffer.size_bytes().trailing_zeros() as usize].push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_reused_and_bounded() {
        let mut pool = Pool::new(16 * 4096);
        let mut first = pool.take(1).unwrap();
        assert_eq!(first.as_mut_ptr() as usize % 4096, 0);
        assert_eq!(first.size_bytes(), 4096);
        first.as_mut_slice().fill(7);
        pool.give(first);
        assert_eq!(pool.take(4096).unwrap().as_mut_slice()[4095], 7, "not reused");

        let mut pool = Pool::new(16 * 4096);
        let held: Vec<Buffer> = (0..16).map(|_| pool.take(4000).unwrap()).collect();
        assert!(pool.take(1).is_none(), "limit ignored");
        for buffer in held {
            pool.give(buffer);
        }
        assert_eq!(pool.take(60_000).unwrap().size_bytes(), 65_536, "idle buffers kept in the way");
        let mut small = Pool::new(1);
        assert!(small.take(8192).is_some(), "a pool must always be able to serve one request");
        assert!(small.take(8192).is_none());
    }
}
