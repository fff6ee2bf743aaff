//! Requests of a round in SCAN order, in subgroups, with their service times.

use crate::model::ServiceModel;
use crate::request::Request;

/// Device with the estimate in use.
#[derive(Clone, Copy)]
pub(super) struct Device<'a> {
    pub model: &'a dyn ServiceModel,
    /// Whole revolutions instead of half ones.
    pub bound: bool,
}

impl Device<'_> {
    pub(super) fn ns(self, from_bytes: u64, request: &Request) -> u64 {
        match self.bound {
            true => self.model.bound_ns(from_bytes, request),
            false => self.model.expected_ns(from_bytes, request),
        }
    }

    pub(super) fn head_bytes(self) -> u64 {
        self.model.head_bytes()
    }

    /// Service time of requests in sequence, and the final position of the arm.
    fn chain<'r>(self, from_bytes: u64, requests: impl Iterator<Item = &'r Request>) -> (u64, u64) {
        requests.fold((0, from_bytes), |(ns, arm_bytes), request| {
            (self.ns(arm_bytes, request).saturating_add(ns), request.end_bytes())
        })
    }

    /// Service time of requests in offset order in one sweep, from the end with the shorter time.
    pub(super) fn sweep_ns(self, from_bytes: u64, requests: &[Request]) -> u64 {
        let up_ns = self.chain(from_bytes, requests.iter()).0;
        up_ns.min(self.chain(from_bytes, requests.iter().rev()).0)
    }

    fn distance(self, from_bytes: u64, request: &Request) -> u32 {
        self.model.cylinder(from_bytes).abs_diff(self.model.cylinder(request.offset_bytes))
    }

    /// Reverses requests in offset order if the upper end is nearer.
    fn turn_to(self, from_bytes: u64, mut requests: Vec<Request>) -> Vec<Request> {
        if let (Some(first), Some(last)) = (requests.first(), requests.last())
            && self.distance(from_bytes, last) < self.distance(from_bytes, first)
        {
            requests.reverse();
        }
        requests
    }
}

/// Inserts a request in offset order.
pub(super) fn insert_by_offset(requests: &mut Vec<Request>, request: Request) {
    let place = requests.partition_point(|other| other.offset_bytes <= request.offset_bytes);
    requests.insert(place, request);
}

/// Remaining subgroups in offset order, with requests in offset order.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<Vec<Request>>);

impl Groups {
    /// Divides requests in offset order into subgroups of a size.
    pub(super) fn new(requests: &[Request], size: usize) -> Groups {
        Groups(requests.chunks(size.max(1)).map(<[Request]>::to_vec).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Request> {
        self.0.iter().flatten()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Request> {
        std::mem::take(&mut self.0).into_iter().flatten()
    }

    /// Service time of all remaining subgroups in one sweep.
    pub(super) fn sweep_ns(&self, device: Device, from_bytes: u64) -> u64 {
        self.rest_ns(device, from_bytes, usize::MAX)
    }

    /// Service time without one subgroup.
    fn rest_ns(&self, device: Device, from_bytes: u64, without: usize) -> u64 {
        let rest = || self.0.iter().enumerate().filter(|(place, _)| *place != without);
        let up_ns = device.chain(from_bytes, rest().flat_map(|(_, group)| group)).0;
        up_ns.min(device.chain(from_bytes, rest().rev().flat_map(|(_, group)| group.iter().rev())).0)
    }

    /// Service time of a subgroup in its direction, and then of the rest.
    fn first_and_rest_ns(&self, device: Device, turned: &[Request], place: usize) -> u64 {
        let (own_ns, arm_bytes) = device.chain(device.head_bytes(), turned.iter());
        own_ns.saturating_add(self.rest_ns(device, arm_bytes, place))
    }

    /// Removes the subgroup closest to the arm; or, if the rest would not complete within `time_ns` after it, the first one
    /// of the shortest sweep.
    pub(super) fn take_closest(&mut self, device: Device, time_ns: u64) -> Vec<Request> {
        let head_bytes = device.head_bytes();
        let distance = |group: &Vec<Request>| {
            let ends = [group.first(), group.last()];
            ends.into_iter().flatten().map(|end| device.distance(head_bytes, end)).min()
        };
        let Some(closest) = (0..self.0.len()).min_by_key(|&place| distance(&self.0[place])) else {
            return Vec::new();
        };
        let turned = device.turn_to(head_bytes, self.0[closest].clone());
        if self.0.len() == 1 || self.first_and_rest_ns(device, &turned, closest) <= time_ns {
            self.0.remove(closest);
            return turned;
        }
        let up_ns = device.chain(head_bytes, self.iter()).0;
        let down_ns = device.chain(head_bytes, self.iter().rev()).0;
        if up_ns <= down_ns {
            return self.0.remove(0);
        }
        let mut last = self.0.pop().unwrap_or_default();
        last.reverse();
        last
    }

    /// Removes the subgroup whose cylinders include an interactive request, with that request, if all remaining requests
    /// then complete within `time_ns`.
    pub(super) fn take_merged(
        &mut self,
        device: Device,
        interactive: &Request,
        time_ns: u64,
    ) -> Option<Vec<Request>> {
        let cylinder = |request: &Request| device.model.cylinder(request.offset_bytes);
        let around = |group: &Vec<Request>| {
            group.first().is_some_and(|first| cylinder(first) <= cylinder(interactive))
                && group.last().is_some_and(|last| cylinder(interactive) <= cylinder(last))
        };
        let place = self.0.iter().position(around)?;
        let mut merged = self.0[place].clone();
        insert_by_offset(&mut merged, *interactive);
        let turned = device.turn_to(device.head_bytes(), merged);
        if self.first_and_rest_ns(device, &turned, place) > time_ns {
            return None;
        }
        self.0.remove(place);
        Some(turned)
    }

    /// Adds a late request to the closest subgroup, or to a new one, if all remaining requests complete within `time_ns`;
    /// returns whether it was added.
    pub(super) fn merge(&mut self, device: Device, request: Request, time_ns: u64) -> bool {
        let distance = |group: &Vec<Request>| {
            let nearest = group.iter().map(|other| request.offset_bytes.abs_diff(other.offset_bytes));
            nearest.min()
        };
        let Some(place) = (0..self.0.len()).min_by_key(|&place| distance(&self.0[place])) else {
            let fits = device.ns(device.head_bytes(), &request) <= time_ns;
            if fits {
                self.0.push(vec![request]);
            }
            return fits;
        };
        insert_by_offset(&mut self.0[place], request);
        if self.sweep_ns(device, device.head_bytes()) <= time_ns {
            return true;
        }
        if let Some(inserted) = self.0[place].iter().rposition(|other| *other == request) {
            self.0[place].remove(inserted);
        }
        false
    }
}
