//! Interface of schedulers.

use crate::model::ServiceModel;
use crate::request::{ClassId, Request};

/// Decision of a scheduler for its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Serve this request; the scheduler no longer holds it.
    Serve(Request),
    /// Serve nothing before this time unless a request arrives: the scheduler holds requests back.
    WaitUntil(u64),
    /// Serve nothing: no request waits.
    Idle,
}

impl Decision {
    /// Serve nothing until a request completes or arrives.
    pub const UNTIL_COMPLETION: Decision = Decision::WaitUntil(u64::MAX);
}

/// An internal figure of a scheduler, for monitoring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// Name with unit: `tokens_kb`, `slack_left_ms`.
    pub name: &'static str,
    /// Class; `None` if the figure covers all classes.
    pub class: Option<ClassId>,
    /// Value.
    pub value: f64,
}

/// A scheduler: decides which request a device serves next.
///
/// Times are nanoseconds on one monotonic clock of the caller's choice. The caller reports events of equal time in the order
/// in which they happened. A scheduler draws no random numbers: the same calls give the same decisions.
pub trait Policy: Send {
    /// Adds a request.
    fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel);

    /// Chooses the next request. The caller calls this when the device can take a request: after an arrival or a completion,
    /// and at the time of [`Decision::WaitUntil`]. For a device that takes several requests the caller repeats the call until
    /// the scheduler returns no request.
    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision;

    /// Reports the completion of a request whose service began at `begun_ns`.
    fn complete(&mut self, now_ns: u64, request: &Request, begun_ns: u64) {
        let _ = (now_ns, request, begun_ns);
    }

    /// Slack, in ns: the time by which all guarantees can be postponed. `None` if the scheduler computes no slack.
    fn slack_ns(&self) -> Option<u64> {
        None
    }

    /// Internal figures as of the last call.
    fn accounts(&self) -> Vec<Account> {
        Vec::new()
    }

    /// Number of waiting requests.
    fn waiting(&self) -> usize;
}
