//! Outstanding requests with separate records of begin and end, in bounded memory.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::request::TraceRequest;

/// Maximum number of outstanding requests; then the oldest is returned without its end. No device or client has as many.
pub(super) const LIMIT: usize = 1 << 16;

/// A hash for sectors and transactions, several times as fast as the library's, which resists chosen keys: here these
/// could only make the reading of a trace slow.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // Both halves of a product by an odd constant without a pattern (2^64 over the golden ratio).
        let product = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A table that is hashed with [`Mix`].
pub(super) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Pending requests in the order of their beginning. Each is returned when it and all earlier ones have ended.
pub(super) struct UnderWay<K> {
    requests: VecDeque<(State<K>, TraceRequest)>,
    /// Number of the first request that is kept: earlier ones were returned.
    first: u64,
    /// The number of the request that has begun under a key and has not ended.
    open: Table<K, u64>,
}

enum State<K> {
    Open(K),
    Ended,
    /// Another has begun under its key: its end was not recorded.
    Lost,
    /// Dropped.
    Withdrawn,
}

impl<K: Hash + Eq + Copy> UnderWay<K> {
    pub(super) fn new() -> Self {
        UnderWay { requests: VecDeque::new(), first: 0, open: Table::default() }
    }

    /// A request begins.
    pub(super) fn begin(&mut self, key: K, request: TraceRequest) {
        let number = self.first + self.requests.len() as u64;
        self.requests.push_back((State::Open(key), request));
        if let Some(older) = self.open.insert(key, number) {
            self.requests[(older - self.first) as usize].0 = State::Lost;
        }
    }

    /// Ends the request of a key, and returns it for its last fields. `None`: none has begun.
    pub(super) fn end(&mut self, key: K) -> Option<&mut TraceRequest> {
        self.close(key, State::Ended)
    }

    /// The request under a key has not begun after all.
    pub(super) fn withdraw(&mut self, key: K) -> Option<&mut TraceRequest> {
        self.close(key, State::Withdrawn)
    }

    fn close(&mut self, key: K, state: State<K>) -> Option<&mut TraceRequest> {
        let number = self.open.remove(&key)?;
        let (found, request) = &mut self.requests[(number - self.first) as usize];
        *found = state;
        Some(request)
    }

    /// The next request to return, and whether its end is known. At the end of a trace, requests without an end are
    /// returned too.
    pub(super) fn next(&mut self, trace_has_ended: bool) -> Option<(TraceRequest, bool)> {
        loop {
            let (state, _) = self.requests.front()?;
            if matches!(state, State::Open(_)) && !trace_has_ended && self.requests.len() <= LIMIT {
                return None;
            }
            let (state, request) = self.requests.pop_front()?;
            self.first += 1;
            match state {
                State::Ended => return Some((request, true)),
                State::Lost => return Some((request, false)),
                State::Withdrawn => {}
                State::Open(key) => {
                    self.open.remove(&key);
                    return Some((request, false));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(arrival_ns: i64) -> TraceRequest {
        TraceRequest { arrival_ns, ..TraceRequest::default() }
    }

    #[test]
    fn requests_are_given_out_in_the_order_of_their_beginnings() {
        let mut under_way = UnderWay::new();
        for number in 0..3 {
            under_way.begin(number, at(number));
        }
        under_way.end(1).unwrap().response_ns = Some(7);
        assert_eq!(under_way.next(false), None);
        under_way.end(0).unwrap();
        assert_eq!(under_way.next(false), Some((at(0), true)));
        assert_eq!(under_way.next(false).unwrap().0.response_ns, Some(7));
        assert_eq!(under_way.next(false), None);
        assert_eq!(under_way.next(true), Some((at(2), false)));
        assert_eq!((under_way.next(true), under_way.end(2)), (None, None));
    }

    #[test]
    fn who_begins_twice_has_lost_an_end_and_who_is_withdrawn_is_forgotten() {
        let mut under_way = UnderWay::new();
        under_way.begin(0, at(1));
        under_way.begin(0, at(2));
        under_way.begin(1, at(3));
        under_way.withdraw(1).unwrap();
        under_way.end(0).unwrap();
        assert_eq!(under_way.next(false), Some((at(1), false)));
        assert_eq!(under_way.next(false), Some((at(2), true)));
        assert_eq!(under_way.next(false), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut under_way = UnderWay::new();
        let mut given = 0;
        for number in 0..LIMIT + 100 {
            under_way.begin(number, at(0));
            while under_way.next(false).is_some() {
                given += 1;
            }
        }
        assert_eq!((given, under_way.requests.len(), under_way.open.len()), (100, LIMIT, LIMIT));
    }
}
