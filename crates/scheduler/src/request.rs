//! Requests and classes, as a scheduler sees them.

pub use weir_vocabulary::{Op, TrafficKind};

use crate::guarantee::Task;

/// Number of a class among the classes that a policy was built for, from 0.
pub type ClassId = u16;

/// One request to one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it; comes back when it is chosen.
    pub tag: u64,
    /// Whose it is.
    pub class: ClassId,
    /// Which client or stream of the class.
    pub stream: u32,
    /// Read or write.
    pub op: Op,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes, at least 1.
    pub size_bytes: u32,
    /// When it arrived.
    pub arrived_ns: u64,
    /// When its answer becomes worthless; `None` if never.
    pub deadline_ns: Option<u64>,
}

impl Request {
    /// The byte after the last one.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(u64::from(self.size_bytes))
    }

    /// Its deadline, where one without comes after all others.
    pub fn due_ns(&self) -> u64 {
        self.deadline_ns.unwrap_or(u64::MAX)
    }
}

/// A class, as a policy is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Kind of its traffic.
    pub kind: TrafficKind,
    /// Its share of the device relative to the other classes; above 0.
    pub weight: f64,
    /// What it asks to be promised of the device; policies that promise nothing of the kind take no notice.
    pub contract: Option<Contract>,
}

/// What a class asks to be promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// Of a real-time class: a request of each stream takes at most the cost, and is asked for at most once in a period.
    /// Of another class: so much service for all its requests together in every period.
    pub task: Task,
    /// Streams of a real-time class that are promised it, by their numbers from 0 on.
    pub streams: u32,
}
