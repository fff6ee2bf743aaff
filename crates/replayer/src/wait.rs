//! Waiting for a send time: sleep, then spin within a CPU budget.

/// Maximum time to wake early: more spinning costs more than it gains.
const MOST_NS: f64 = 300_000.0;
/// Minimum time to wake early: reading the clock and leaving the kernel take time.
const LEAST_NS: f64 = 10_000.0;

/// Share of time for spinning, and the maximum that may be saved.
const SPIN_SHARE: f64 = 0.5;
const SPIN_SAVED_NS: f64 = 5_000_000.0;

/// Bounds the time spent spinning. The pacing thread has priority over others, and completions or threads of the device may be
/// bound to the CPU on which it spins.
#[derive(Debug)]
pub(crate) struct SpinBudget {
    saved_ns: f64,
    updated_ns: i64,
}

impl SpinBudget {
    pub fn new(now_ns: i64) -> Self {
        SpinBudget { saved_ns: SPIN_SAVED_NS, updated_ns: now_ns }
    }

    /// Whether spinning for `wanted_ns` is affordable at `now_ns`.
    pub fn allows(&mut self, wanted_ns: i64, now_ns: i64) -> bool {
        let earned = (now_ns - self.updated_ns) as f64 * SPIN_SHARE;
        self.saved_ns = (self.saved_ns + earned).min(SPIN_SAVED_NS);
        self.updated_ns = now_ns;
        self.saved_ns >= wanted_ns as f64
    }

    /// Records time spent spinning.
    pub fn spend(&mut self, spent_ns: i64) {
        self.saved_ns -= spent_ns as f64;
    }
}

/// Share of time that a real-time thread sleeps. Linux gives a CPU that a real-time thread occupies to waiting threads for 50 ms
/// in each second (fair server; before Linux 6.12 real-time throttling), and requests due then would be late. Sleeping for
/// more than these 5 %, in short parts, avoids this.
const REST_SHARE: f64 = 0.08;
/// Length of one sleep. With the wake-up delay it is below the lateness limit of the certificate.
const REST_NS: f64 = 40_000.0;
/// Limit of the sleep that counts in advance.
const REST_SAVED_NS: f64 = 1_000_000.0;

/// Decides when a busy real-time thread sleeps.
#[derive(Debug)]
pub(crate) struct Rest {
    owed_ns: f64,
    updated_ns: i64,
}

impl Rest {
    pub fn new(now_ns: i64) -> Self {
        Rest { owed_ns: 0.0, updated_ns: now_ns }
    }

    /// Time to sleep at `now_ns`; `None` if the thread has slept enough.
    pub fn owed_ns(&mut self, now_ns: i64) -> Option<i64> {
        self.owed_ns += (now_ns - self.updated_ns) as f64 * REST_SHARE;
        self.updated_ns = now_ns;
        (self.owed_ns >= REST_NS).then_some(REST_NS as i64)
    }

    /// Records a sleep for any reason.
    pub fn rested(&mut self, for_ns: i64) {
        self.owed_ns = (self.owed_ns - for_ns as f64).max(-REST_SAVED_NS);
    }
}

/// Estimates the delay between the end of a sleep and the thread running again, as TCP estimates its
/// retransmission timeout: mean plus four mean deviations (Jacobson, SIGCOMM 1988), gains 1/16.
#[derive(Debug)]
pub(crate) struct WakeDelay {
    mean_ns: f64,
    deviation_ns: f64,
}

impl WakeDelay {
    pub fn new() -> Self {
        WakeDelay { mean_ns: 60_000.0, deviation_ns: 10_000.0 }
    }

    /// Records a sleep that ended `late_ns` late.
    pub fn observe(&mut self, late_ns: i64) {
        // One preemption of milliseconds must not cost a core for later requests.
        let late_ns = (late_ns as f64).clamp(0.0, 2.0 * MOST_NS);
        let error = late_ns - self.mean_ns;
        self.mean_ns += error / 16.0;
        self.deviation_ns += (error.abs() - self.deviation_ns) / 16.0;
    }

    /// Time to wake before the due time.
    pub fn margin_ns(&self) -> i64 {
        (self.mean_ns + 4.0 * self.deviation_ns).clamp(LEAST_NS, MOST_NS) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_half_of_the_time_is_spent_spinning() {
        let mut budget = SpinBudget::new(0);
        let mut spent = 0;
        for now in (0..1_000_000_000).step_by(50_000) {
            if budget.allows(45_000, now) {
                budget.spend(45_000);
                spent += 45_000;
            }
        }
        assert!((495_000_000..=505_000_000).contains(&spent), "{spent}");
    }

    #[test]
    fn who_is_always_busy_rests_in_small_parts() {
        let (mut rest, mut rests, mut now) = (Rest::new(0), Vec::new(), 0);
        while now < 1_000_000_000 {
            now += 5_000;
            if let Some(for_ns) = rest.owed_ns(now) {
                rests.push(now);
                now += for_ns;
                rest.rested(for_ns);
            }
        }
        let share = rests.len() as f64 * REST_NS / now as f64;
        assert!((0.06..0.09).contains(&share), "{share}");
        assert!(rests.windows(2).all(|two| two[1] - two[0] < 1_000_000), "not a second without");
        // Who sleeps anyhow owes nothing.
        let mut idle = Rest::new(0);
        for now in (0..1_000_000_000).step_by(100_000) {
            idle.rested(50_000);
            assert_eq!(idle.owed_ns(now), None);
        }
    }

    #[test]
    fn the_margin_follows_the_machine() {
        let mut delay = WakeDelay::new();
        for _ in 0..300 {
            delay.observe(3_000);
        }
        assert_eq!(delay.margin_ns(), LEAST_NS as i64);
        for i in 0..300 {
            delay.observe(if i % 2 == 0 { 40_000 } else { 60_000 });
        }
        assert!((85_000..95_000).contains(&delay.margin_ns()), "{}", delay.margin_ns());
        delay.observe(50_000_000);
        assert!(delay.margin_ns() <= MOST_NS as i64);
    }
}
