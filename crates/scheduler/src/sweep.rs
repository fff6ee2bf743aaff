//! Sweep order of waiting requests.

use crate::by_offset::{ByOffset, Key};
use crate::request::Request;

/// What the arm does when no request is ahead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Serves those behind it on the way back.
    Around,
    /// Goes back to the lowest one and sweeps upwards again.
    ToTheStart,
}

/// Where a sweep is.
///
/// It moves by the requests that it served and not by where the arm really is, as elevators in operating systems do:
/// a request that a cache answers moves no arm, and a sweep that went by the arm could meet it again and again. Within a
/// sweep offsets go strictly one way, except that requests for one offset that wait when the sweep comes there are
/// served one after the other. What arrives for that offset later waits for the next sweep, so that nobody who asks for
/// one block again and again can hold the arm there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sweep {
    turn: Turn,
    up: bool,
    at: Option<At>,
}

#[derive(Debug, Clone, Copy)]
struct At {
    key: Key,
    /// Arrivals from this number on came after the sweep had come to the offset.
    later: u64,
}

impl Sweep {
    pub(crate) fn new(turn: Turn) -> Self {
        Sweep { turn, up: true, at: None }
    }

    /// Takes the next request out of those that wait. The first sweep begins at `head_bytes`.
    pub(crate) fn take(&mut self, waiting: &mut ByOffset, head_bytes: u64) -> Option<Request> {
        if waiting.is_empty() {
            return None;
        }
        let key = self.ahead(waiting, head_bytes).or_else(|| self.turned(waiting))?;
        let later = match self.at {
            Some(At { key: (offset_bytes, _), later }) if offset_bytes == key.0 && key.1 < later => later,
            _ => waiting.arrivals(),
        };
        self.at = Some(At { key, later });
        waiting.remove(key)
    }

    /// The one that [`Sweep::take`] would take.
    pub(crate) fn peek(&self, waiting: &ByOffset, head_bytes: u64) -> Option<Key> {
        let mut sweep = *self;
        sweep.ahead(waiting, head_bytes).or_else(|| sweep.turned(waiting))
    }

    fn ahead(&self, waiting: &ByOffset, head_bytes: u64) -> Option<Key> {
        let Some(At { key: (offset_bytes, number), later }) = self.at else {
            return waiting.from((head_bytes, 0));
        };
        let next = waiting.from((offset_bytes, number + 1));
        match next {
            Some(key) if key.0 == offset_bytes && key.1 < later => next,
            Some(key) if self.up && key.0 > offset_bytes => next,
            None if self.up => None,
            _ if self.up => waiting.from((offset_bytes.checked_add(1)?, 0)),
            _ => waiting.below(offset_bytes),
        }
    }

    fn turned(&mut self, waiting: &ByOffset) -> Option<Key> {
        let key = match self.turn {
            Turn::Around if self.up => waiting.highest(),
            Turn::Around | Turn::ToTheStart => waiting.lowest(),
        }?;
        if self.turn == Turn::Around {
            self.up = !self.up;
        }
        // A new sweep: those who came to the offset where the last one ended have their turn now.
        self.at = None;
        Some(key)
    }
}
