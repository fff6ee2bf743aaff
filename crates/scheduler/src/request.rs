//! Requests and classes of a scheduler.

pub use weir_vocabulary::{Op, TrafficKind};

use crate::guarantee::Task;

/// Index of a class among the classes of a scheduler, from 0.
pub type ClassId = u16;

/// One request to one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The caller's identifier, returned with the decision.
    pub tag: u64,
    /// Class.
    pub class: ClassId,
    /// Client or stream of the class.
    pub stream: u32,
    /// Read or write.
    pub op: Op,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes, at least 1.
    pub size_bytes: u32,
    /// Arrival time.
    pub arrived_ns: u64,
    /// Deadline; `None` if there is none.
    pub deadline_ns: Option<u64>,
}

impl Request {
    /// The byte after the last one.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(u64::from(self.size_bytes))
    }

    /// Deadline; the latest possible time if there is none.
    pub fn due_ns(&self) -> u64 {
        self.deadline_ns.unwrap_or(u64::MAX)
    }
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Name.
    pub name: String,
    /// Traffic kind.
    pub kind: TrafficKind,
    /// Weight: the share of the device relative to other classes; above 0.
    pub weight: f64,
    /// Requested service guarantee of the class; schedulers without contracts ignore it.
    pub contract: Option<Contract>,
}

/// Service guarantee of a class: a service time per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// Real-time class: each stream sends at most one request per period, whose service time is at most the cost.
    /// Other classes: service time of all requests together in every period.
    pub task: Task,
    /// Number of streams of a real-time class with the guarantee: streams 0, 1 and on.
    pub streams: u32,
}
