//! The rings of completed requests: one for each CPU, written by one BPF program, read here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use super::event::{COMPLETED_NS_AT, EVENT_BYTES};
use super::skeleton::types;
use crate::error::Error;

/// Events in each of `cpus` rings that take at most `bytes` together: a power of two.
pub(super) fn events_of_ring(bytes: u32, cpus: usize) -> u32 {
    let events = bytes as usize / EVENT_BYTES / cpus.max(1);
    u32::try_from(1_usize << events.max(1).ilog2()).unwrap_or(1 << 31)
}

/// The rings, mapped for as long as this lives.
pub(super) struct Rings {
    events: NonNull<u8>,
    bytes: usize,
    /// `rings` of `block.bpf.c`.
    positions: NonNull<types::ring>,
    cpus: usize,
    events_of_ring: u64,
}

impl Rings {
    /// Maps the events of `cpus` rings of `events_of_ring` each.
    ///
    /// # Safety
    /// `positions` are those of at least `cpus` rings, and stay mapped for as long as the result lives.
    pub(super) unsafe fn map(
        map: impl AsFd,
        positions: NonNull<types::ring>,
        cpus: usize,
        events_of_ring: u32,
    ) -> Result<Self, Error> {
        let bytes = cpus * events_of_ring as usize * EVENT_BYTES;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let events = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, map, 0)
        }
        .map_err(|error| Error::Bpf(format!("the rings of completed requests cannot be mapped: {error}")))?;
        let events =
            NonNull::new(events.cast()).ok_or_else(|| Error::Bpf("mapped at address 0".to_owned()))?;
        Ok(Rings { events, bytes, positions, cpus, events_of_ring: u64::from(events_of_ring) })
    }

    /// `written` and `taken` of one CPU's ring.
    fn positions_of(&self, cpu: usize) -> (&AtomicU64, &AtomicU64) {
        assert!(cpu < self.cpus);
        // SAFETY: the ring exists and stays mapped by the contract of `map`; both are aligned, and the program accesses them as whole
        // 8 bytes.
        unsafe {
            let ring = self.positions.as_ptr().add(cpu);
            (AtomicU64::from_ptr(&raw mut (*ring).written), AtomicU64::from_ptr(&raw mut (*ring).taken))
        }
    }

    /// Number of events that each CPU has written.
    pub(super) fn written(&self) -> Vec<u64> {
        (0..self.cpus).map(|cpu| self.positions_of(cpu).0.load(Ordering::Acquire)).collect()
    }

    /// Takes the events before those positions of [`Rings::written`], and calls `each` with each, in order of completion.
    ///
    /// Returns the share of the fullest ring that was in use.
    pub(super) fn take(&mut self, until: &[u64], mut each: impl FnMut(&[u8])) -> f64 {
        let mut fullest = 0;
        // Of each CPU the next event: when it completed, the CPU, the position.
        let mut next = BinaryHeap::new();
        for (cpu, until) in until.iter().enumerate().take(self.cpus) {
            let taken = self.positions_of(cpu).1.load(Ordering::Relaxed);
            fullest = fullest.max(until - taken);
            if taken < *until {
                next.push(Reverse((completed_ns(self.event(cpu, taken)), cpu, taken)));
            }
        }
        while let Some(mut first) = next.peek_mut() {
            let Reverse((_, cpu, position)) = *first;
            each(self.event(cpu, position));
            if position + 1 < until[cpu] {
                *first = Reverse((completed_ns(self.event(cpu, position + 1)), cpu, position + 1));
            } else {
                PeekMut::pop(first);
                self.positions_of(cpu).1.store(until[cpu], Ordering::Release);
            }
        }
        fullest as f64 / self.events_of_ring as f64
    }

    /// An event that is written and not yet taken.
    fn event(&self, cpu: usize, position: u64) -> &[u8] {
        let index = cpu as u64 * self.events_of_ring + position % self.events_of_ring;
        // SAFETY: the index is inside the mapping, and the program does not write to an event before it is taken.
        unsafe {
            std::slice::from_raw_parts(
                self.events.as_ptr().add(index as usize * EVENT_BYTES).cast_const(),
                EVENT_BYTES,
            )
        }
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; no slice of it outlives a call.
        unsafe {
            let _ = rustix::mm::munmap(self.events.as_ptr().cast(), self.bytes);
        }
    }
}

fn completed_ns(event: &[u8]) -> u64 {
    event[COMPLETED_NS_AT..COMPLETED_NS_AT + 8].try_into().map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;
    use rustix::fs::MemfdFlags;

    use super::*;

    #[test]
    fn a_ring_has_a_power_of_two_of_events() {
        assert_eq!(events_of_ring(32 << 20, 2), 1 << 17);
        assert_eq!(events_of_ring(72 * 8, 1), 8);
        assert_eq!(events_of_ring(72 * 8 - 1, 1), 4);
        assert_eq!(events_of_ring(0, 512), 1);
    }

    /// What the programs do.
    struct Writer {
        file: File,
        /// Those of the rings.
        _positions: Vec<types::ring>,
    }

    impl Writer {
        fn new(cpus: usize, events_of_ring: u32) -> (Self, Rings) {
            let file = File::from(rustix::fs::memfd_create(c"rings", MemfdFlags::CLOEXEC).unwrap());
            file.set_len((cpus * events_of_ring as usize * EVENT_BYTES) as u64).unwrap();
            let mut positions = Vec::new();
            positions.resize_with(cpus, types::ring::default);
            let first = NonNull::new(positions.as_mut_ptr()).unwrap();
            // SAFETY: the vector has one for each CPU, does not grow, and is dropped after the rings in each test.
            let rings = unsafe { Rings::map(&file, first, cpus, events_of_ring) }.unwrap();
            (Writer { file, _positions: positions }, rings)
        }

        /// Whether there was room.
        fn write(&mut self, rings: &Rings, cpu: usize, time_ns: u64) -> bool {
            let (written, taken) = rings.positions_of(cpu);
            let position = written.load(Ordering::Relaxed);
            if position - taken.load(Ordering::Relaxed) >= rings.events_of_ring {
                return false;
            }
            let mut event = [0; EVENT_BYTES];
            event[COMPLETED_NS_AT..COMPLETED_NS_AT + 8].copy_from_slice(&time_ns.to_ne_bytes());
            let index = cpu as u64 * rings.events_of_ring + position % rings.events_of_ring;
            self.file.write_all_at(&event, index * EVENT_BYTES as u64).unwrap();
            written.store(position + 1, Ordering::Release);
            true
        }
    }

    proptest! {
        #[test]
        fn each_event_is_taken_once_and_in_order(
            steps in proptest::collection::vec((0..3_usize, any::<bool>()), 1..400),
        ) {
            let (mut writer, mut rings) = Writer::new(3, 8);
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for (time_ns, (cpu, visits)) in steps.into_iter().enumerate() {
                if writer.write(&rings, cpu, time_ns as u64) {
                    expected.push(time_ns as u64);
                }
                if visits {
                    let until = rings.written();
                    let in_use = rings.take(&until, |event| found.push(completed_ns(event)));
                    prop_assert!((0.0..=1.0).contains(&in_use));
                    // Nothing is taken twice.
                    rings.take(&until, |_| unreachable!());
                }
            }
            let until = rings.written();
            rings.take(&until, |event| found.push(completed_ns(event)));
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_full_ring_refuses_until_it_is_read() {
        let (mut writer, mut rings) = Writer::new(2, 4);
        assert!((0..4).all(|time_ns| writer.write(&rings, 1, time_ns)) && !writer.write(&rings, 1, 4));
        assert!(writer.write(&rings, 0, 5));
        let until = rings.written();
        let mut found = Vec::new();
        assert_eq!(rings.take(&until, |event| found.push(completed_ns(event))), 1.0);
        assert_eq!(found, [0, 1, 2, 3, 5]);
        assert!(writer.write(&rings, 1, 6));
    }
}
