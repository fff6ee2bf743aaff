//! BFQ's classification of the device: rotational or not, with command queueing or not.

/// Number of requests in the device above which it has command queueing.
const THRESHOLD: u64 = 3;
/// Number of completions under load for a classification.
const SAMPLES: u64 = 32;

#[derive(Debug)]
pub(crate) struct Device {
    /// Maximum idling for a queue's next request.
    pub(crate) slice_idle_ns: u64,
    pub(crate) rotational: bool,
    /// Whether it has command queueing; assumed until known.
    pub(crate) queues: bool,
    pub(crate) in_service: u64,
    most_in_service: u64,
    samples: u64,
}

impl Device {
    pub(crate) fn new(slice_idle_ns: u64, rotational: bool) -> Self {
        Device { slice_idle_ns, rotational, queues: true, in_service: 0, most_in_service: 0, samples: 0 }
    }

    pub(crate) fn issued(&mut self) {
        self.in_service += 1;
    }

    /// A request completed, and others wait. `starved`: too few requests were in the device for an estimate of its rate.
    pub(crate) fn completed(&mut self, waiting: u64, starved: bool) {
        self.most_in_service = self.most_in_service.max(self.in_service);
        if self.in_service + waiting > THRESHOLD && !(starved && self.in_service < THRESHOLD) {
            self.samples += 1;
            if self.samples > SAMPLES {
                self.queues = self.most_in_service > THRESHOLD;
                self.most_in_service = 0;
                self.samples = 0;
            }
        }
        self.in_service = self.in_service.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_is_found_out() {
        for (depth, queues) in [(1, false), (3, false), (4, true)] {
            let mut device = Device::new(0, true);
            for n in 0..40 {
                assert_eq!(device.queues, queues || n <= 32, "{depth} {n}");
                for _ in device.in_service..depth {
                    device.issued();
                }
                device.completed(10, false);
            }
        }
    }
}
