//! SATF: shortest access time first, with ageing.

use crate::by_offset::{ByOffset, Key};
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;

/// Up to this many requests, it takes less time to evaluate all than to bound them; 2 to 8 are alike.
const FEW: usize = 4;
/// The weight of age is kept in millionths.
const MILLION: i128 = 1_000_000;

pub(crate) const ENTRY: Entry = Entry {
    name: "satf",
    label: "SATF",
    about: "shortest access time first: least seek and rotation (Jacobson and Wilkes, HPL-CSP-91-7rev1; Seltzer, Chen \
            and Ousterhout, Winter USENIX 1990), with ageing",
    promises: "work conserving; no other request, less its bonus for age, is reached sooner (without ageing requests \
               can starve)",
    settings: &[(
        "age_weight",
        "ns of positioning time that one ns of waiting offsets, 0 to 1; default 0: no ageing",
    )],
    build: |_, settings| {
        let age_weight = settings.number("age_weight", 0.0, 0.0, 1.0)?;
        Ok(Box::new(Satf {
            age_millionths: (age_weight * MILLION as f64).round() as i128,
            waiting: ByOffset::default(),
        }))
    },
};

/// Serves the request with the shortest positioning time. Without ageing a decision evaluates requests outwards from the
/// head, until the lower bound on either side exceeds the best.
#[derive(Debug)]
struct Satf {
    age_millionths: i128,
    waiting: ByOffset,
}

/// Request with the shortest positioning time so far; the earliest arrival of equal times.
struct Nearest<'a> {
    now_ns: u64,
    model: &'a dyn ServiceModel,
    found: Option<(u64, Key)>,
}

impl Nearest<'_> {
    fn consider(&mut self, (key, request): (&Key, &Request)) {
        let effort_ns = self.model.positioning_ns(self.now_ns, request);
        // Keys end with the number of the arrival.
        if self.found.is_none_or(|(least_ns, of)| (effort_ns, key.1) < (least_ns, of.1)) {
            self.found = Some((effort_ns, *key));
        }
    }

    /// Whether a request with a positioning time of at least `least_ns` cannot be chosen.
    fn is_before(&self, least_ns: u64) -> bool {
        self.found.is_some_and(|(effort_ns, _)| least_ns > effort_ns)
    }
}

impl Satf {
    fn search(&self, nearest: &mut Nearest) {
        let (model, waiting) = (nearest.model, &self.waiting);
        model.held(&mut |range| waiting.within(range).for_each(|one| nearest.consider(one)));
        let head_bytes = model.head_bytes();
        let mut up = waiting.behind(head_bytes).peekable();
        let mut down = waiting.within(0..head_bytes).rev().peekable();
        let least_ns = |side: Option<&(&Key, &Request)>| {
            side.map_or(u64::MAX, |(_, request)| model.least_positioning_ns(request.offset_bytes))
        };
        let (mut up_ns, mut down_ns) = (least_ns(up.peek()), least_ns(down.peek()));
        while !nearest.is_before(up_ns.min(down_ns)) {
            let next = if up_ns <= down_ns { up.next() } else { down.next() };
            let Some(one) = next else { return };
            nearest.consider(one);
            match up_ns <= down_ns {
                true => up_ns = least_ns(up.peek()),
                false => down_ns = least_ns(down.peek()),
            }
        }
    }

    fn take_nearest(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Option<Request> {
        if self.waiting.len() <= FEW {
            return self.waiting.take_least(|request| model.positioning_ns(now_ns, request));
        }
        let mut nearest = Nearest { now_ns, model, found: None };
        self.search(&mut nearest);
        nearest.found.and_then(|(_, key)| self.waiting.remove(key))
    }

    /// With ageing all are evaluated: the farthest may have waited longest.
    fn take_nearest_by_age(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Option<Request> {
        let age_millionths = self.age_millionths;
        self.waiting.take_least(|request| {
            let waited_ns = i128::from(now_ns.saturating_sub(request.arrived_ns));
            i128::from(model.positioning_ns(now_ns, request)) * MILLION - waited_ns * age_millionths
        })
    }
}

impl Policy for Satf {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.waiting.insert(request);
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        if self.waiting.len() <= 1 {
            return self.waiting.pop_lowest().map_or(Decision::Idle, Decision::Serve);
        }
        let found = match self.age_millionths > 0 {
            true => self.take_nearest_by_age(now_ns, model),
            false => self.take_nearest(now_ns, model),
        };
        found.map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{at, device, offsets, policy, read};
    use crate::policy::Decision;
    use crate::request::Request;

    #[test]
    fn the_soonest_is_first() {
        assert_eq!(offsets(&mut *policy("satf", &[]), &at(&[98, 14, 65, 67]), 53), [65, 67, 98, 14]);
    }

    #[test]
    fn age_counts_against_distance() {
        // 100 cylinders are 100,000 ns away; 150,000 ns of waiting are worth more than that if a ns is worth a ns.
        let old = read(153);
        let young = Request { arrived_ns: 150_000, ..read(54) };
        for (weight, first) in [("0", 54), ("0.5", 54), ("1", 153)] {
            let mut policy = policy("satf", &[("age_weight", weight)]);
            policy.arrive(0, old, &device(53));
            policy.arrive(150_000, young, &device(53));
            let Decision::Serve(request) = policy.next(150_000, &device(53)) else { panic!("two wait") };
            assert_eq!(request.offset_bytes, first, "age_weight={weight}");
        }
    }
}
