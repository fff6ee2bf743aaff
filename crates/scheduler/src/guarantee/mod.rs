//! Schedulability and slack of periodic real-time requests on a non-preemptive device.
//!
//! A [`Task`] sends one request of at most `cost_ns` in every `period_ns`; its deadline is one period after its release.
//! Tests, the coarsest first:
//!
//! * [`rate_monotonic_bound`]: Liu and Layland, "Scheduling algorithms for multiprogramming in a hard-real-time
//!   environment", JACM 20(1), 1973, for fixed priorities and preemption;
//! * [`Utilisation::fits`]: the same paper's test for deadline order with preemption. Atropos and the User-Safe Disk
//!   use it for admission, which is not sufficient for a disk (Bosch, "Mixed-media file systems", PhD thesis, University of Twente,
//!   1999, section 6.4.1);
//! * [`slack()`]: Jeffay, Stanat and Martel, "On non-preemptive scheduling of periodic and sporadic tasks", RTSS 1991,
//!   conditions (6.1) and (6.2) of the thesis, with the slack ΔL of its Definition 1: the least time between the
//!   completion of any request and its deadline, for any arrivals.
//!
//! A [`TaskSet`] tests streams as they start and end. All times are whole ns; no result depends on rounding.

mod bound;
mod slack;
mod sweep;
mod task;
mod task_set;
mod utilisation;

pub use bound::rate_monotonic_bound;
pub use slack::{Mode, Rejection, Slack, Tightest, slack};
pub use task::{Task, TaskError};
pub use task_set::{TaskId, TaskSet};
pub use utilisation::Utilisation;
