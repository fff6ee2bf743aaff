//! The interface of schedulers.

use crate::model::ServiceModel;
use crate::request::{ClassId, Request};

/// What the device is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Serve this one; the policy does not hold it any more.
    Serve(Request),
    /// Nothing before this time, unless something arrives: the policy holds requests back.
    WaitUntil(u64),
    /// Nothing: no request waits.
    Idle,
}

impl Decision {
    /// Nothing before something that the device has is done, unless something arrives.
    pub const UNTIL_COMPLETION: Decision = Decision::WaitUntil(u64::MAX);
}

/// A figure that a policy reckons with, for whoever watches it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account {
    /// What it is, with its unit: `tokens_kb`, `slack_left_ms`.
    pub name: &'static str,
    /// Whose it is; `None` if it is of all classes together.
    pub class: Option<ClassId>,
    /// Its value.
    pub value: f64,
}

/// Decides which request a device serves next.
///
/// Times are nanoseconds on one clock of the caller's choice that does not go back; equal times are told in the order in
/// which things happened. The same calls give the same decisions: a policy draws nothing at random.
pub trait Policy: Send {
    /// Takes a request.
    fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel);

    /// Decides. The caller asks when the device can take a request: after an arrival or a completion, and at the time
    /// of [`Decision::WaitUntil`]. Devices that take several requests are asked for until the policy has none for them.
    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision;

    /// Is told that a request that was served, from `begun_ns` on, is done.
    fn complete(&mut self, now_ns: u64, request: &Request, begun_ns: u64) {
        let _ = (now_ns, request, begun_ns);
    }

    /// By how much what it has promised can be put off, in ns, of a policy that reckons with that.
    fn slack_ns(&self) -> Option<u64> {
        None
    }

    /// What it has in account, as it was when the policy was last told something.
    fn accounts(&self) -> Vec<Account> {
        Vec::new()
    }

    /// Requests that wait.
    fn waiting(&self) -> usize;
}
