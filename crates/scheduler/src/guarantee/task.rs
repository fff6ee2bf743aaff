//! Periodic task: cost and period.

/// A sporadic task: a request of at most `cost_ns` in every `period_ns`, with a deadline one period after its release.
///
/// Releases are at least one period apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    period_ns: u64,
    cost_ns: u64,
}

/// Error in a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value_ns} ns, expected from 1 ns to {most_ns} ns")]
pub struct TaskError {
    /// `cost` or `period`.
    pub field: &'static str,
    /// Value.
    pub value_ns: u64,
    /// Largest valid value.
    pub most_ns: u64,
}

impl Task {
    /// Longest period and largest cost: eleven days.
    pub const MOST_NS: u64 = 1_000_000_000_000_000;

    /// A task.
    ///
    /// # Errors
    /// The cost or the period is 0, or more than [`Task::MOST_NS`].
    pub fn new(cost_ns: u64, period_ns: u64) -> Result<Task, TaskError> {
        for (field, value_ns) in [("cost", cost_ns), ("period", period_ns)] {
            if !(1..=Self::MOST_NS).contains(&value_ns) {
                return Err(TaskError { field, value_ns, most_ns: Self::MOST_NS });
            }
        }
        Ok(Task { period_ns, cost_ns })
    }

    /// A task from ms, rounded to whole ns.
    ///
    /// # Errors
    /// Invalid field, `cost_ms` or `period_ms`, and problem.
    pub fn from_ms(cost_ms: f64, period_ms: f64) -> Result<Task, (&'static str, String)> {
        const MOST_MS: f64 = (Task::MOST_NS / 1_000_000) as f64;
        let ns = |field, ms: f64| {
            let ns = (ms * 1e6).round();
            if ns >= 1.0 && ms <= MOST_MS {
                Ok(ns as u64)
            } else {
                Err((field, format!("is {ms}; it must be above 0 and at most {MOST_MS} ms")))
            }
        };
        let (cost_ns, period_ns) = (ns("cost_ms", cost_ms)?, ns("period_ms", period_ms)?);
        Task::new(cost_ns, period_ns).map_err(|error| ("cost_ms", error.to_string()))
    }

    /// Largest service time of a request.
    pub fn cost_ns(self) -> u64 {
        self.cost_ns
    }

    /// Least time between releases, and time from release to deadline.
    pub fn period_ns(self) -> u64 {
        self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_refused_by_name() {
        assert_eq!(Task::new(2, 5).map(|task| (task.cost_ns(), task.period_ns())), Ok((2, 5)));
        assert!(Task::new(0, 5).unwrap_err().to_string().starts_with("cost is 0 ns"));
        assert_eq!(Task::new(1, u64::MAX).unwrap_err().field, "period");
    }
}
