//! SATF: shortest access time first, with ageing.

use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::registry::Entry;
use crate::request::Request;

/// The weight of age is kept in millionths.
const MILLION: i128 = 1_000_000;

pub(crate) const ENTRY: Entry = Entry {
    name: "satf",
    about: "shortest access time first: least seek and rotation (Jacobson and Wilkes, HPL-CSP-91-7rev1; Seltzer, Chen \
            and Ousterhout, Winter USENIX 1990), with ageing",
    promises: "work conserving; no other request, less its bonus for age, is reached sooner (without ageing requests \
               can starve)",
    settings: &[(
        "age_weight",
        "ns of positioning that a ns of waiting is worth, 0 to 1; default 0: no ageing",
    )],
    build: |_, settings| {
        let age_weight = settings.number("age_weight", 0.0, 0.0, 1.0)?;
        Ok(Box::new(Satf {
            age_millionths: (age_weight * MILLION as f64).round() as i128,
            waiting: Vec::new(),
        }))
    },
};

/// Serves the request that is reached first; each decision asks the device for every request that waits.
#[derive(Debug)]
struct Satf {
    age_millionths: i128,
    /// In the order of arrival.
    waiting: Vec<Request>,
}

impl Policy for Satf {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.waiting.push(request);
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        let effort = |request: &Request| {
            let waited_ns = i128::from(now_ns.saturating_sub(request.arrived_ns));
            i128::from(model.positioning_ns(now_ns, request)) * MILLION - waited_ns * self.age_millionths
        };
        // Of several, min_by_key gives the first: the one that arrived first.
        let nearest = (0..self.waiting.len()).min_by_key(|index| effort(&self.waiting[*index]));
        nearest.map_or(Decision::Idle, |index| Decision::Serve(self.waiting.remove(index)))
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
