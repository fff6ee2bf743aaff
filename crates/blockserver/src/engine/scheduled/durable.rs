//! Durability: flushes and discards, which the scheduler does not order.

use std::sync::{PoisonError, mpsc};

use weir_simulator::Device as _;

use super::buffer::{Payload, Reply};
use super::direct::{CompletionKind, Direct};
use super::engine::{Engine, Media, errno};
use crate::engine::backing::Backing;

impl Engine {
    /// Accepts a flush: it completes once every write completed before is on the medium.
    pub fn flush(&self, reply: Reply) {
        self.counters.flush();
        match &self.setup.media {
            Media::Modelled(_) => self.sync_then(reply),
            Media::Direct(direct) => {
                let mut inner = self.lock();
                let heads = inner.heads().len();
                let place = inner.join(reply, heads);
                for head in 0..heads {
                    direct.flush(&mut inner.flights, CompletionKind::Join { place }, head);
                }
            }
        }
    }

    /// Accepts a discard: it zeroes bytes immediately, without the scheduler.
    pub fn discard(&self, offset_bytes: u64, size_bytes: u64, reply: Reply) {
        let is_inside = offset_bytes.checked_add(size_bytes).is_some_and(|end| end <= self.size_bytes());
        let block = u64::from(self.block_bytes());
        if !is_inside || !offset_bytes.is_multiple_of(block) || !size_bytes.is_multiple_of(block) {
            self.counters.error();
            return reply.send(Err(libc::EINVAL));
        }
        self.counters.discards.add(size_bytes);
        match &self.setup.media {
            Media::Modelled(backing) => {
                let done = backing.discard(offset_bytes, size_bytes);
                let mut inner = self.lock();
                for (head, at, length) in inner.dispatcher.striping().ranges(offset_bytes, size_bytes) {
                    inner.dispatcher.machine_mut(head).discard(at, length);
                }
                drop(inner);
                reply.send(done.map(|()| Payload::Nothing).map_err(|error| errno(&error)));
            }
            Media::Direct(direct) => self.discard_parts(direct, offset_bytes, size_bytes, reply),
        }
    }

    fn discard_parts(&self, direct: &Direct, offset_bytes: u64, size_bytes: u64, reply: Reply) {
        let mut inner = self.lock();
        let ranges: Vec<_> = inner.dispatcher.striping().ranges(offset_bytes, size_bytes).collect();
        if ranges.is_empty() {
            drop(inner);
            return reply.send(Ok(Payload::Nothing));
        }
        let place = inner.join(reply, ranges.len());
        for (head, at, length) in ranges {
            direct.discard(&mut inner.flights, CompletionKind::Join { place }, head, (at, length));
        }
    }

    /// Thread that syncs a backing file for flushes, until the engine is dropped.
    pub fn make_durable(&self) {
        let receiver = self.synced.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(receiver), Media::Modelled(backing)) = (receiver, &self.setup.media) else { return };
        while let Ok(first) = receiver.recv() {
            let replies: Vec<Reply> = std::iter::once(first).chain(receiver.try_iter()).collect();
            let done = match &**backing {
                Backing::File(file) => file.sync_data(),
                Backing::Memory(_) => Ok(()),
            };
            let outcome = done.map_err(|error| errno(&error));
            replies.into_iter().for_each(|reply| reply.send(outcome.map(|()| Payload::Nothing)));
        }
    }

    /// Replies once all stored data are on the medium; immediately for memory.
    pub(super) fn sync_then(&self, reply: Reply) {
        match &self.setup.media {
            Media::Modelled(backing) if matches!(**backing, Backing::File(_)) => {
                // It fails only after the thread has ended; the file is synced when the server ends.
                if let Err(mpsc::SendError(reply)) = self.syncs.send(reply) {
                    reply.send(Err(libc::EIO));
                }
            }
            _ => reply.send(Ok(Payload::Nothing)),
        }
    }
}
