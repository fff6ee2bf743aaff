//! Buffers for direct I/O: aligned, pooled and bounded; the first ones in one piece of memory that the kernel can pin once.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Alignment in memory: satisfies every device, and no transfer straddles a page needlessly.
const ALIGNMENT: usize = 4096;
/// Bytes of the arena.
const ARENA_BYTES: usize = 32 << 20;

/// Memory of a power-of-two size, aligned to 4096 bytes.
#[derive(Debug)]
pub(crate) struct Buffer {
    data: NonNull<u8>,
    layout: Layout,
    /// Whether the memory is the arena's.
    in_arena: bool,
}

// SAFETY: the buffer owns its memory, as a Box<[u8]> would, or a part of an arena that nobody else has.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A zeroed buffer of at least `size_bytes`.
    ///
    /// Out of memory ends the process, as for any other allocation.
    pub fn new(size_bytes: usize) -> Self {
        let layout = layout(size_bytes);
        // SAFETY: the layout has a nonzero size.
        let data = unsafe { alloc_zeroed(layout) };
        let Some(data) = NonNull::new(data) else { handle_alloc_error(layout) };
        Buffer { data, layout, in_arena: false }
    }

    pub fn size_bytes(&self) -> usize {
        self.layout.size()
    }

    /// Whether the buffer is in the memory of [`Pool::arena`].
    pub fn is_in_arena(&self) -> bool {
        self.in_arena
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
        if !self.in_arena {
            // SAFETY: allocated with this layout, and freed once.
            unsafe { dealloc(self.data.as_ptr(), self.layout) };
        }
    }
}

fn layout(size_bytes: usize) -> Layout {
    let size = size_bytes.max(ALIGNMENT).next_power_of_two();
    // The size is a power of two of at least the alignment, so rounding it up is the identity.
    match Layout::from_size_align(size, ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => handle_alloc_error(Layout::new::<u8>()),
    }
}

/// One piece of memory, cut into buffers from its beginning.
struct Arena {
    data: NonNull<u8>,
    used_bytes: usize,
}

impl Arena {
    /// `None` where the memory cannot be had: then all buffers are allocated one by one.
    fn new() -> Option<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let data = unsafe {
            mmap_anonymous(null_mut(), ARENA_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let data = NonNull::new(data.ok()?.cast::<u8>())?;
        // Fewer pages to pin; the mapping works without.
        // SAFETY: the range is the whole mapping, and the advice does not change its content.
        let _ = unsafe { madvise(data.as_ptr().cast(), ARENA_BYTES, Advice::LinuxHugepage) };
        Some(Arena { data, used_bytes: 0 })
    }

    fn take(&mut self, size_bytes: usize) -> Option<Buffer> {
        let layout = layout(size_bytes);
        if layout.size() > ARENA_BYTES - self.used_bytes {
            return None;
        }
        // SAFETY: the place is within the mapping, which is aligned to pages, as all sizes are.
        let data = unsafe { self.data.add(self.used_bytes) };
        self.used_bytes += layout.size();
        Some(Buffer { data, layout, in_arena: true })
    }
}

/// Buffers by size class, kept for reuse.
pub(crate) struct Pool {
    free: Vec<Vec<Buffer>>,
    allocated_bytes: usize,
    limit_bytes: usize,
    arena: Option<Arena>,
    /// Buffers that were taken and not given back.
    lent: usize,
}

impl Pool {
    /// A pool that hands out at most `limit_bytes` in sum, but always at least one buffer.
    pub fn new(limit_bytes: usize) -> Self {
        Self::of(limit_bytes, None)
    }

    /// As [`Pool::new`], with an arena. A small limit is kept to the byte, without one: an arena would use it up for some sizes
    /// and leave none for others.
    pub fn with_arena(limit_bytes: usize) -> Self {
        Self::of(limit_bytes, if limit_bytes >= 8 * ARENA_BYTES { Arena::new() } else { None })
    }

    fn of(limit_bytes: usize, arena: Option<Arena>) -> Self {
        let in_arena = if arena.is_some() { ARENA_BYTES } else { 0 };
        Pool {
            free: (0..usize::BITS).map(|_| Vec::new()).collect(),
            allocated_bytes: 0,
            limit_bytes: limit_bytes - in_arena,
            arena,
            lent: 0,
        }
    }

    /// The arena's memory: start and bytes.
    pub fn arena(&self) -> Option<(*mut u8, usize)> {
        self.arena.as_ref().map(|arena| (arena.data.as_ptr(), ARENA_BYTES))
    }

    /// A buffer of at least `size_bytes`; `None` while the limit is reached.
    pub fn take(&mut self, size_bytes: usize) -> Option<Buffer> {
        let size = size_bytes.max(ALIGNMENT).next_power_of_two();
        let free = self.free[size.trailing_zeros() as usize].pop();
        let buffer = free.or_else(|| self.arena.as_mut()?.take(size)).or_else(|| self.allocate(size));
        self.lent += usize::from(buffer.is_some());
        buffer
    }

    fn allocate(&mut self, size: usize) -> Option<Buffer> {
        if self.allocated_bytes + size > self.limit_bytes {
            // Idle buffers of other sizes may use up the limit.
            for class in &mut self.free {
                class.retain(|idle| {
                    self.allocated_bytes -= if idle.in_arena { 0 } else { idle.size_bytes() };
                    idle.in_arena
                });
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
        self.lent -= 1;
        self.free[buffer.size_bytes().trailing_zeros() as usize].push(buffer);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.free.clear();
        // The kernel may still write into what was not given back: that memory must not become someone else's.
        if let Some(arena) = &self.arena
            && self.lent == 0
        {
            // SAFETY: the mapping is this pool's, and no buffer in it is left.
            let _ = unsafe { munmap(arena.data.as_ptr().cast(), ARENA_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_buffers_are_in_one_piece() {
        let mut pool = Pool::with_arena(16 * ARENA_BYTES);
        let (start, bytes) = pool.arena().expect("32 MiB of memory");
        let mut all: Vec<Buffer> = (0..3).map(|_| pool.take(ARENA_BYTES / 2).unwrap()).collect();
        for (number, buffer) in all.iter_mut().enumerate() {
            let offset = (buffer.as_mut_ptr() as usize).wrapping_sub(start as usize);
            assert_eq!(buffer.is_in_arena(), number < 2);
            assert_eq!(offset < bytes, number < 2);
            buffer.as_mut_slice().fill(number as u8);
        }
        assert!(all.iter_mut().enumerate().all(|(number, buffer)| buffer.as_mut_slice()[77] == number as u8));
        all.into_iter().for_each(|buffer| pool.give(buffer));
        assert!(
            pool.take(ARENA_BYTES / 2).is_some_and(|buffer| !buffer.is_in_arena()),
            "the last is given first"
        );
    }

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
