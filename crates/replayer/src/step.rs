//! A request and what it waits for.

use smallvec::SmallVec;
use weir_records::Request;

/// A request of a stream, with the earlier ones that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The request. Its intended time counts only if it waits for none.
    pub request: Request,
    /// What it waits for.
    pub after: After,
}

/// Requests that another waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct After {
    /// For each of them, by how many requests it is earlier in the stream: at least 1, at most [`After::FURTHEST`].
    pub back: SmallVec<[u32; 2]>,
    /// Time from the completion of the last of them to the request.
    pub think_ns: i64,
}

impl After {
    /// Largest distance in the stream.
    pub const FURTHEST: u32 = 65_536;
}

impl From<Request> for Step {
    fn from(request: Request) -> Self {
        Step { request, after: After::default() }
    }
}
