//! Whether periodic real-time requests can be promised their deadlines on a device that does not stop a request that it
//! has begun, and how long they can be put off.
//!
//! A [`Task`] asks for a request of at most `cost_ns` in every `period_ns`; a request's deadline is its release and a
//! period. Tests, the coarsest first:
//!
//! * [`rate_monotonic_bound`]: Liu and Layland, "Scheduling algorithms for multiprogramming in a hard-real-time
//!   environment", JACM 20(1), 1973, for fixed priorities and preemption;
//! * [`Utilisation::fits`]: the same paper's test for deadline order with preemption. Atropos and the User-Safe Disk
//!   admit by it, which is not enough for a disk (Bosch, "Mixed-media file systems", PhD thesis, University of Twente,
//!   1999, section 6.4.1);
//! * [`slack()`]: Jeffay, Stanat and Martel, "On non-preemptive scheduling of periodic and sporadic tasks", RTSS 1991,
//!   conditions (6.1) and (6.2) of the thesis, with the slack ΔL of its Definition 1: the time by which every request of
//!   an admitted set is done before its deadline, whenever requests come.
//!
//! A [`TaskSet`] does this as streams come and go. All times are whole ns, and no verdict rests on a rounded number.

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
