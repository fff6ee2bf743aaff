//! Waiting requests ordered by address.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;

use crate::request::Request;

/// Key of a waiting request: offset and arrival number.
pub(crate) type Key = (u64, u64);

/// Requests by offset; requests of one offset in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct ByOffset {
    requests: BTreeMap<Key, Request>,
    arrivals: u64,
}

impl ByOffset {
    pub(crate) fn insert(&mut self, request: Request) -> Key {
        let key = (request.offset_bytes, self.arrivals);
        self.arrivals += 1;
        self.requests.insert(key, request);
        key
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Request> {
        self.requests.remove(&key)
    }

    pub(crate) fn pop_lowest(&mut self) -> Option<Request> {
        self.requests.pop_first().map(|(_, request)| request)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Request> {
        self.requests.get(&key)
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Number of arrivals; keys of later arrivals have at least this number.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// First request at or after a key.
    pub(crate) fn from(&self, key: Key) -> Option<Key> {
        self.requests.range(key..).next().map(|(key, _)| *key)
    }

    /// Request with the greatest offset below this one; the earliest arrival of equal offsets.
    pub(crate) fn below(&self, offset_bytes: u64) -> Option<Key> {
        let (nearest, _) = self.requests.range(..(offset_bytes, 0)).next_back()?.0;
        self.from((*nearest, 0))
    }

    /// Last request before a key.
    pub(crate) fn before(&self, key: Key) -> Option<Key> {
        self.requests.range(..key).next_back().map(|(key, _)| *key)
    }

    pub(crate) fn lowest(&self) -> Option<Key> {
        self.requests.first_key_value().map(|(key, _)| *key)
    }

    /// Request with the greatest offset; the earliest arrival of equal offsets.
    pub(crate) fn highest(&self) -> Option<Key> {
        let (offset_bytes, _) = *self.requests.last_key_value()?.0;
        self.from((offset_bytes, 0))
    }

    /// Requests that begin in a byte range.
    pub(crate) fn within(&self, offsets: std::ops::Range<u64>) -> Range<'_, Key, Request> {
        let end = offsets.end.max(offsets.start);
        self.requests.range((offsets.start, 0)..(end, 0))
    }

    /// Requests at or after an offset.
    pub(crate) fn behind(&self, offset_bytes: u64) -> Range<'_, Key, Request> {
        self.requests.range((offset_bytes, 0)..)
    }

    pub(crate) fn iter(&self) -> Range<'_, Key, Request> {
        self.requests.range(..)
    }
}
