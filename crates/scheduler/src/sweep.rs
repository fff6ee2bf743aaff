//! Sweep order of requests (SCAN and C-SCAN).

use crate::by_offset::{ByOffset, Choice, Key, Sorted};
use crate::request::Request;

/// Movement at the end of a sweep, when no request is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Reverses, and serves requests on the way back.
    Around,
    /// Returns to the lowest request and sweeps upwards again.
    ToTheStart,
}

/// Position and direction of a sweep.
///
/// The position follows the served requests, as in operating systems, not the arm: a cache hit moves no arm, and a sweep
/// that followed the arm could serve one cached block for ever. Within a sweep offsets change in one direction. Requests
/// for one offset that wait when the sweep reaches it are served one after the other; later arrivals for this offset wait
/// for the next sweep, so repeated requests for one block cannot hold the arm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sweep {
    turn: Turn,
    up: bool,
    at: Option<At>,
}

#[derive(Debug, Clone, Copy)]
struct At {
    key: Key,
    /// Arrivals from this number on came after the sweep reached the offset.
    later: u64,
}

impl Sweep {
    pub(crate) fn new(turn: Turn) -> Self {
        Sweep { turn, up: true, at: None }
    }

    /// Removes the next request from the waiting ones. The first sweep begins at `head_bytes`.
    pub(crate) fn take(&mut self, waiting: &mut ByOffset, head_bytes: u64) -> Option<Request> {
        let arrivals = waiting.arrivals();
        let (key, request) = waiting.take(&mut Ahead { sweep: self, head_bytes })?;
        let later = match self.at {
            Some(At { key: (offset_bytes, _), later }) if offset_bytes == key.0 && key.1 < later => later,
            _ => arrivals,
        };
        self.at = Some(At { key, later });
        Some(request)
    }

    /// Request that [`Sweep::take`] would remove.
    pub(crate) fn peek(&self, waiting: &ByOffset, head_bytes: u64) -> Option<Key> {
        waiting.choose(&mut Ahead { sweep: &mut self.clone(), head_bytes })
    }

    fn ahead<S: Sorted>(&self, waiting: &S, head_bytes: u64) -> Option<S::Place> {
        let Some(At { key: (offset_bytes, number), later }) = self.at else {
            return waiting.from((head_bytes, 0));
        };
        let next = waiting.from((offset_bytes, number + 1));
        match next.map(|place| waiting.key(place)) {
            Some(key) if key.0 == offset_bytes && key.1 < later => next,
            Some(key) if self.up && key.0 > offset_bytes => next,
            None if self.up => None,
            _ if self.up => waiting.from((offset_bytes.checked_add(1)?, 0)),
            _ => waiting.below(offset_bytes),
        }
    }

    fn turned<S: Sorted>(&mut self, waiting: &S) -> Option<S::Place> {
        let place = match self.turn {
            Turn::Around if self.up => waiting.highest(),
            Turn::Around | Turn::ToTheStart => waiting.lowest(),
        }?;
        if self.turn == Turn::Around {
            self.up = !self.up;
        }
        // A new sweep: requests that arrived at the offset where the last one ended are served now.
        self.at = None;
        Some(place)
    }
}

/// The request that a sweep comes to next.
struct Ahead<'a> {
    sweep: &'a mut Sweep,
    head_bytes: u64,
}

impl Choice for Ahead<'_> {
    fn choose<S: Sorted>(&mut self, waiting: &S) -> Option<S::Place> {
        self.sweep.ahead(waiting, self.head_bytes).or_else(|| self.sweep.turned(waiting))
    }
}
