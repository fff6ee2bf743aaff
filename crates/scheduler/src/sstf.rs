//! SSTF: shortest seek time first.

use crate::by_offset::ByOffset;
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;

pub(crate) const ENTRY: Entry = Entry {
    name: "sstf",
    label: "SSTF",
    about: "shortest seek time first: the nearest cylinder (Denning 1967)",
    promises: "work conserving; no other request is on a nearer cylinder (requests at the edges can starve)",
    settings: &[],
    build: |_, _| Ok(Box::new(Sstf::default())),
};

/// Serves the request on the cylinder nearest to the arm; on cylinders equally near the nearer address, and upwards if
/// these are equally near, too.
#[derive(Debug, Default)]
struct Sstf {
    waiting: ByOffset,
}

impl Policy for Sstf {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.waiting.insert(request);
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        let head_bytes = model.head_bytes();
        let cylinder = model.cylinder(head_bytes);
        // Addresses in order lie on cylinders in order: the nearest of all is the nearest on one of the two sides.
        let candidates = [self.waiting.from((head_bytes, 0)), self.waiting.below(head_bytes)];
        let nearest = candidates.into_iter().flatten().min_by_key(|(offset_bytes, _)| {
            (model.cylinder(*offset_bytes).abs_diff(cylinder), offset_bytes.abs_diff(head_bytes))
        });
        nearest.and_then(|key| self.waiting.remove(key)).map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{at, offsets, policy};

    #[test]
    fn the_nearest_is_first() {
        let queue = at(&[100, 183, 37, 122, 14, 124, 65, 67]);
        // The arm is behind the byte that it read: from 68 it is 31 to 37 and 32 to 100.
        assert_eq!(offsets(&mut *policy("sstf", &[]), &queue, 53), [65, 67, 37, 14, 100, 122, 124, 183]);
    }

    #[test]
    fn of_two_equally_near_the_upper() {
        assert_eq!(offsets(&mut *policy("sstf", &[]), &at(&[40, 60]), 50), [60, 40]);
    }
}
