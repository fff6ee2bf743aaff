//! One FCFS queue per disk with a constant service time.

use std::collections::VecDeque;

/// What arrivals at the queues find.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    service_ns: i64,
    /// Times at which the requests in each queue will be done.
    done_ns: Vec<VecDeque<i64>>,
    count: f64,
    length_sum: f64,
    length_squares: f64,
    longest: usize,
    response_sum_ns: f64,
    /// Arrivals with a counted response.
    responses: f64,
}

impl Queues {
    /// `files` empty queues.
    pub(crate) fn new(files: usize, service_ns: i64) -> Self {
        Queues {
            service_ns,
            done_ns: vec![VecDeque::new(); files],
            count: 0.0,
            length_sum: 0.0,
            length_squares: 0.0,
            longest: 0,
            response_sum_ns: 0.0,
            responses: 0.0,
        }
    }

    /// A request to `file` arrives; times must not fall. Every request is served; responses of `counted` ones are
    /// recorded.
    pub(crate) fn arrive(&mut self, file: usize, at_ns: i64, counted: bool) {
        let queue = &mut self.done_ns[file];
        while queue.front().is_some_and(|done| *done <= at_ns) {
            queue.pop_front();
        }
        let done_ns = queue.back().copied().unwrap_or(at_ns).max(at_ns) + self.service_ns;
        queue.push_back(done_ns);
        if counted {
            let length = queue.len();
            self.count += 1.0;
            self.length_sum += length as f64;
            self.length_squares += (length * length) as f64;
            self.longest = self.longest.max(length);
            self.response_sum_ns += (done_ns - at_ns) as f64;
            self.responses += 1.0;
        }
    }

    /// Mean number of requests that an arrival finds, itself included; `None` without arrivals.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.length_sum / self.count)
    }

    /// Standard deviation of that number.
    pub(crate) fn std(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((self.length_squares / self.count - mean * mean).max(0.0).sqrt())
    }

    /// The highest such number.
    pub(crate) fn longest(&self) -> Option<f64> {
        (self.count > 0.0).then_some(self.longest as f64)
    }

    /// Mean time from arrival to the end of service, in ms.
    pub(crate) fn response_ms(&self) -> Option<f64> {
        (self.responses > 0.0).then(|| self.response_sum_ns / self.responses / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_responses_worked_out_by_hand() {
        let mut queues = Queues::new(2, 10);
        // Disk 0: done at 10, 20, 30; an arrival at 20 finds one before it. Disk 1 is idle.
        queues.arrive(0, 0, true);
        queues.arrive(0, 0, true);
        queues.arrive(0, 5, true);
        queues.arrive(0, 20, true);
        queues.arrive(1, 20, true);
        // Lengths 1, 2, 3, 2, 1; responses 10, 20, 25, 20, 10.
        assert_eq!(queues.mean(), Some(9.0 / 5.0));
        assert_eq!(queues.longest(), Some(3.0));
        assert_eq!(queues.response_ms(), Some(17.0 / 1e6));
        let variance: f64 = 19.0 / 5.0 - 1.8 * 1.8;
        assert!((queues.std().unwrap() - variance.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nothing_arrived_means_nothing_known() {
        let queues = Queues::new(1, 10);
        assert_eq!(
            (queues.mean(), queues.std(), queues.longest(), queues.response_ms()),
            (None, None, None, None)
        );
    }
}
