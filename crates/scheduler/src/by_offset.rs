//! Waiting requests ordered by address.

use std::collections::{BTreeMap, btree_map};
use std::ops::{Bound, RangeBounds};
use std::slice;

use crate::request::Request;

/// Key of a waiting request: offset and arrival number.
pub(crate) type Key = (u64, u64);

/// Longest sorted list: more requests are in a tree. Of a few, a list is faster (`make bench-simulator`: 1.05 times the rate).
const FEW: usize = 24;
/// Length at which a tree becomes a list again. It is far below [`FEW`], so that few arrivals and departures cannot convert a queue
/// again and again.
const FEW_AGAIN: usize = 6;

/// Requests by offset; requests of one offset in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct ByOffset {
    requests: Requests,
    arrivals: u64,
}

#[derive(Debug)]
enum Requests {
    List(Vec<(Key, Request)>),
    Tree(BTreeMap<Key, Request>),
}

impl Default for Requests {
    fn default() -> Self {
        Requests::List(Vec::new())
    }
}

impl Requests {
    fn insert(&mut self, key: Key, request: Request) {
        match self {
            Requests::List(list) if list.len() < FEW => {
                let place = list.iter().rposition(|(other, _)| *other < key).map_or(0, |before| before + 1);
                list.insert(place, (key, request));
            }
            Requests::List(list) => {
                let mut tree: BTreeMap<_, _> = list.drain(..).collect();
                tree.insert(key, request);
                *self = Requests::Tree(tree);
            }
            Requests::Tree(tree) => {
                tree.insert(key, request);
            }
        }
    }

    fn remove(&mut self, key: Key) -> Option<Request> {
        match self {
            Requests::List(list) => {
                let place = list.iter().position(|(other, _)| *other == key)?;
                Some(list.remove(place).1)
            }
            Requests::Tree(tree) => {
                let removed = tree.remove(&key);
                if tree.len() <= FEW_AGAIN {
                    *self = Requests::List(std::mem::take(tree).into_iter().collect());
                }
                removed
            }
        }
    }

    fn get(&self, key: Key) -> Option<&Request> {
        match self {
            Requests::List(list) => {
                let place = list.binary_search_by_key(&key, |(other, _)| *other).ok()?;
                Some(&list[place].1)
            }
            Requests::Tree(tree) => tree.get(&key),
        }
    }

    fn len(&self) -> usize {
        match self {
            Requests::List(list) => list.len(),
            Requests::Tree(tree) => tree.len(),
        }
    }

    fn range(&self, keys: impl RangeBounds<Key>) -> Range<'_> {
        match self {
            Requests::List(list) => {
                let from = match keys.start_bound() {
                    Bound::Included(first) => list.partition_point(|(key, _)| key < first),
                    Bound::Excluded(before) => list.partition_point(|(key, _)| key <= before),
                    Bound::Unbounded => 0,
                };
                let to = match keys.end_bound() {
                    Bound::Included(last) => list.partition_point(|(key, _)| key <= last),
                    Bound::Excluded(after) => list.partition_point(|(key, _)| key < after),
                    Bound::Unbounded => list.len(),
                };
                Range::List(list[from..to.max(from)].iter())
            }
            Requests::Tree(tree) => Range::Tree(tree.range(keys)),
        }
    }
}

/// Requests in order of their keys, of which each has a place.
pub(crate) trait Sorted {
    type Place: Copy;

    fn key(&self, place: Self::Place) -> Key;

    /// First request at or after a key.
    fn from(&self, key: Key) -> Option<Self::Place>;

    /// Request with the greatest offset below this one; the earliest arrival of equal offsets.
    fn below(&self, offset_bytes: u64) -> Option<Self::Place>;

    /// Request with the greatest offset; the earliest arrival of equal offsets.
    fn highest(&self) -> Option<Self::Place>;

    fn lowest(&self) -> Option<Self::Place> {
        self.from((0, 0))
    }
}

/// A choice of one waiting request.
pub(crate) trait Choice {
    fn choose<S: Sorted>(&mut self, waiting: &S) -> Option<S::Place>;
}

impl Sorted for Vec<(Key, Request)> {
    type Place = usize;

    fn key(&self, place: usize) -> Key {
        self[place].0
    }

    fn from(&self, key: Key) -> Option<usize> {
        self.iter().position(|(other, _)| *other >= key)
    }

    fn below(&self, offset_bytes: u64) -> Option<usize> {
        self.iter().rposition(|((other, _), _)| *other < offset_bytes).map(|place| first_of(self, place))
    }

    fn highest(&self) -> Option<usize> {
        self.len().checked_sub(1).map(|place| first_of(self, place))
    }
}

/// Place of the first request with the offset of this one.
fn first_of(list: &[(Key, Request)], place: usize) -> usize {
    let ((offset_bytes, _), _) = list[place];
    list[..place].iter().rposition(|((other, _), _)| *other < offset_bytes).map_or(0, |before| before + 1)
}

impl Sorted for BTreeMap<Key, Request> {
    type Place = Key;

    fn key(&self, place: Key) -> Key {
        place
    }

    fn from(&self, key: Key) -> Option<Key> {
        self.range(key..).next().map(|(key, _)| *key)
    }

    fn below(&self, offset_bytes: u64) -> Option<Key> {
        let (nearest, _) = self.range(..(offset_bytes, 0)).next_back()?.0;
        self.from((*nearest, 0))
    }

    fn highest(&self) -> Option<Key> {
        let (offset_bytes, _) = self.last_key_value()?.0;
        self.from((*offset_bytes, 0))
    }
}

/// Requests in order of their keys.
pub(crate) enum Range<'a> {
    List(slice::Iter<'a, (Key, Request)>),
    Tree(btree_map::Range<'a, Key, Request>),
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a Key, &'a Request);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Range::List(list) => list.next().map(|(key, request)| (key, request)),
            Range::Tree(tree) => tree.next(),
        }
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Range::List(list) => list.next_back().map(|(key, request)| (key, request)),
            Range::Tree(tree) => tree.next_back(),
        }
    }
}

impl ByOffset {
    pub(crate) fn insert(&mut self, request: Request) -> Key {
        let key = (request.offset_bytes, self.arrivals);
        self.arrivals += 1;
        self.requests.insert(key, request);
        key
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<Request> {
        self.requests.remove(key)
    }

    pub(crate) fn pop_lowest(&mut self) -> Option<Request> {
        match &mut self.requests {
            Requests::List(list) => (!list.is_empty()).then(|| list.remove(0).1),
            Requests::Tree(_) => self.lowest().and_then(|key| self.remove(key)),
        }
    }

    /// Removes the request with the least value; the earliest arrival of equal values.
    #[inline]
    pub(crate) fn take_least<V: Ord>(&mut self, value: impl Fn(&Request) -> V) -> Option<Request> {
        match &mut self.requests {
            Requests::List(list) => {
                let places = list.iter().enumerate();
                let (place, _) =
                    places.min_by_key(|(_, ((_, arrival), request))| (value(request), *arrival))?;
                Some(list.remove(place).1)
            }
            Requests::Tree(tree) => {
                let (key, _) =
                    tree.iter().min_by_key(|((_, arrival), request)| (value(request), *arrival))?;
                let key = *key;
                self.remove(key)
            }
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Request> {
        self.requests.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of arrivals; keys of later arrivals have at least this number.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// First request at or after a key.
    pub(crate) fn from(&self, key: Key) -> Option<Key> {
        match &self.requests {
            Requests::List(list) => list.from(key).map(|place| list.key(place)),
            Requests::Tree(tree) => tree.from(key),
        }
    }

    /// Request with the greatest offset below this one; the earliest arrival of equal offsets.
    pub(crate) fn below(&self, offset_bytes: u64) -> Option<Key> {
        match &self.requests {
            Requests::List(list) => list.below(offset_bytes).map(|place| list.key(place)),
            Requests::Tree(tree) => tree.below(offset_bytes),
        }
    }

    /// Key of the request that is chosen.
    pub(crate) fn choose(&self, choice: &mut impl Choice) -> Option<Key> {
        match &self.requests {
            Requests::List(list) => choice.choose(list).map(|place| list.key(place)),
            Requests::Tree(tree) => choice.choose(tree),
        }
    }

    /// Removes the request that is chosen. Of a list its place is looked up once.
    pub(crate) fn take(&mut self, choice: &mut impl Choice) -> Option<(Key, Request)> {
        match &mut self.requests {
            Requests::List(list) => choice.choose(list).map(|place| list.remove(place)),
            Requests::Tree(tree) => {
                let key = choice.choose(tree)?;
                self.remove(key).map(|request| (key, request))
            }
        }
    }

    /// Last request before a key.
    pub(crate) fn before(&self, key: Key) -> Option<Key> {
        self.requests.range(..key).next_back().map(|(key, _)| *key)
    }

    pub(crate) fn lowest(&self) -> Option<Key> {
        self.iter().next().map(|(key, _)| *key)
    }

    /// Requests that begin in a byte range.
    pub(crate) fn within(&self, offsets: std::ops::Range<u64>) -> Range<'_> {
        let end = offsets.end.max(offsets.start);
        self.requests.range((offsets.start, 0)..(end, 0))
    }

    /// Requests at or after an offset.
    pub(crate) fn behind(&self, offset_bytes: u64) -> Range<'_> {
        self.requests.range((offset_bytes, 0)..)
    }

    pub(crate) fn iter(&self) -> Range<'_> {
        self.requests.range(..)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::read;

    struct Highest;

    impl Choice for Highest {
        fn choose<S: Sorted>(&mut self, waiting: &S) -> Option<S::Place> {
            waiting.highest()
        }
    }

    proptest! {
        #[test]
        fn a_list_and_a_tree_answer_alike(
            steps in prop::collection::vec((0..10, 0u64..40, any::<prop::sample::Index>()), 1..300),
            places in prop::collection::vec(0u64..42, 8),
        ) {
            let (mut found, mut plain) = (ByOffset::default(), BTreeMap::new());
            for (tag, (chance, place, which)) in steps.into_iter().enumerate() {
                // They become many, and then few again.
                let arrives = chance < if tag < 80 { 8 } else { 3 };
                if arrives || plain.is_empty() {
                    let request = Request { tag: tag as u64, ..read(place * 512) };
                    let key = found.insert(request);
                    plain.insert(key, request);
                } else {
                    let key = *plain.keys().nth(which.index(plain.len())).unwrap();
                    prop_assert_eq!(found.remove(key), plain.remove(&key));
                    prop_assert_eq!(found.remove(key), None);
                }
                prop_assert_eq!((found.len(), found.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert!(found.iter().eq(plain.iter()));
                prop_assert!(found.iter().rev().eq(plain.iter().rev()));
                prop_assert_eq!(found.lowest(), plain.keys().next().copied());
                // Of several requests with one offset the earliest.
                let first_with = |last: Option<&Key>| plain.keys().find(|key| last.is_some_and(|of| of.0 == key.0)).copied();
                prop_assert_eq!(found.choose(&mut Highest), first_with(plain.keys().next_back()));
                for &place in &places {
                    let (at, to) = (place * 512, (place + 7) * 512);
                    prop_assert!(found.behind(at).eq(plain.range((at, 0)..)));
                    prop_assert!(found.within(at..to).eq(plain.range((at, 0)..(to, 0))));
                    prop_assert_eq!(found.within(to..at).count(), 0);
                    prop_assert_eq!(found.below(at), first_with(plain.range(..(at, 0)).next_back().map(|(key, _)| key)));
                    prop_assert_eq!(found.from((at, 3)), plain.range((at, 3)..).next().map(|(key, _)| *key));
                    prop_assert_eq!(found.before((at, 3)), plain.range(..(at, 3)).next_back().map(|(key, _)| *key));
                }
            }
            let least = plain.iter().min_by_key(|(key, request)| (request.offset_bytes % 3, key.1)).map(|(key, _)| *key);
            let least = least.and_then(|key| plain.remove(&key));
            prop_assert_eq!(found.take_least(|request| request.offset_bytes % 3), least);
            let first = plain.pop_first().map(|(_, request)| request);
            prop_assert_eq!(found.pop_lowest(), first);
        }
    }
}
