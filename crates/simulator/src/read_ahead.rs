//! Read-ahead buffer: after a read the head continues until the buffer is full or another request arrives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::Op;
use crate::mechanism::{Arm, Mechanism};

/// Where reading ahead ends at the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadAheadStop {
    /// When the segment is full.
    #[default]
    Segment,
    /// At the end of the track of the last requested sector.
    Track,
}

/// How far a segment reads ahead of the reader, how many sectors it keeps behind it, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub ahead: u64,
    pub keep: u64,
    pub stop: ReadAheadStop,
}

/// One buffer segment and the read that fills it.
///
/// The head's reading is a plan: from `plan_sector` at `plan_ns` onwards, up to `limit`. Its progress is computed on
/// demand.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    first: u64,
    plan_sector: u64,
    plan_ns: u64,
    plan_arm: Arm,
    limit: u64,
    reading: bool,
    reach: Reach,
}

impl Segment {
    /// The segment after a read of the sectors `first..end` that ended at `end_ns`.
    pub fn after_read(
        first: u64,
        end: u64,
        end_ns: u64,
        arm: Arm,
        reach: Reach,
        mechanism: &Mechanism,
    ) -> Self {
        let mut segment = Self {
            first,
            plan_sector: end,
            plan_ns: end_ns,
            plan_arm: arm,
            limit: end,
            reading: true,
            reach,
        };
        segment.make_room(mechanism, end);
        segment
    }

    /// A segment that holds `first..end` and does not read.
    pub fn stored(first: u64, end: u64) -> Self {
        Self {
            first,
            plan_sector: end,
            plan_ns: 0,
            plan_arm: Arm { cylinder: 0, head: 0 },
            limit: end,
            reading: false,
            reach: Reach { ahead: 0, keep: end - first, stop: ReadAheadStop::Segment },
        }
    }

    /// The first sector that is not in the buffer at `now_ns`, and the place of the arm.
    fn front(&self, mechanism: &Mechanism, now_ns: u64) -> (u64, Arm) {
        if self.reading {
            mechanism.progress(self.plan_ns, self.plan_arm, self.plan_sector, self.limit, now_ns)
        } else {
            (self.plan_sector, self.plan_arm)
        }
    }

    /// Where the arm is, if it belongs to this segment's reading.
    pub fn arm(&self, mechanism: &Mechanism, now_ns: u64) -> Option<Arm> {
        self.reading.then(|| self.front(mechanism, now_ns).1)
    }

    /// From where to which sector it reads, if it does.
    pub fn reading_between(&self) -> Option<(Arm, u64)> {
        self.reading.then_some((self.plan_arm, self.limit))
    }

    /// Current and planned content: first sector, and the one after the last.
    pub fn sectors(&self) -> [u64; 2] {
        [self.first, self.limit]
    }

    /// Whether the arm belongs to this segment.
    pub fn has_arm(&self) -> bool {
        self.reading
    }

    /// Whether a read of `first..end` at `now_ns` is served without sending the arm anywhere.
    pub fn holds(&self, mechanism: &Mechanism, now_ns: u64, first: u64, end: u64) -> bool {
        let (front, _) = self.front(mechanism, now_ns);
        let starts = first >= self.first && (first < front || (first == front && self.reading));
        starts && (end <= front || self.reading)
    }

    /// When a read of `first..end` that starts at `now_ns` has its data in the buffer, if the buffer holds its start and
    /// the head is there or on its way: `None` means that the arm must be sent.
    pub fn read(&mut self, mechanism: &Mechanism, now_ns: u64, first: u64, end: u64) -> Option<u64> {
        if !self.holds(mechanism, now_ns, first, end) {
            return None;
        }
        if !self.reading {
            return Some(now_ns);
        }
        let (front, arm) = self.front(mechanism, now_ns);
        let mut available_ns = now_ns;
        if end > front {
            let access = if front < self.limit {
                // The head is reading: the wanted sectors come by in their turn.
                let sectors = end - self.plan_sector;
                mechanism.access(self.plan_ns, self.plan_arm, self.plan_sector, sectors, Op::Read)
            } else {
                // The buffer was full and the head waited on its track: it must meet the next sector again.
                mechanism.access(now_ns, arm, front, end - front, Op::Read)
            };
            available_ns = access.end_ns;
            (self.plan_sector, self.plan_ns, self.plan_arm) = (end, access.end_ns, access.arm);
        } else if front == self.limit {
            // The read makes room, so the head starts again from where it stopped.
            (self.plan_sector, self.plan_ns, self.plan_arm) = (front, now_ns, arm);
        }
        self.make_room(mechanism, end);
        Some(available_ns)
    }

    /// Stops reading at `now_ns` and keeps the data. Returns the position of the arm if the segment used it.
    pub fn stop(&mut self, mechanism: &Mechanism, now_ns: u64) -> Option<Arm> {
        if !self.reading {
            return None;
        }
        let (front, arm) = self.front(mechanism, now_ns);
        self.plan_sector = front;
        self.plan_arm = arm;
        self.limit = front;
        self.reading = false;
        Some(arm)
    }

    /// Whether any of the sectors `first..end` may be in the buffer.
    pub fn overlaps(&self, first: u64, end: u64) -> bool {
        first < self.limit && end > self.first
    }

    /// The reader has consumed everything before `end`: read up to `ahead` sectors after it, and keep `keep` before it.
    fn make_room(&mut self, mechanism: &Mechanism, end: u64) {
        let stop = match self.reach.stop {
            ReadAheadStop::Segment => mechanism.geometry.sectors(),
            ReadAheadStop::Track => end - 1 + u64::from(mechanism.geometry.locate(end - 1).left_on_track),
        };
        self.limit = self.limit.max((end + self.reach.ahead).min(stop));
        self.first = self.first.max(end.saturating_sub(self.reach.keep));
    }
}
