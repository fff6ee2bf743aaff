//! Disk mechanism: positioning and transfer times.

use std::ops::Range;
use std::sync::Arc;

use crate::device::Op;
use crate::geometry::{Geometry, Location};
use crate::rotation::Rotation;
use crate::seek_times::SeekTimes;

/// Which track the arm is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Cylinder under the heads.
    pub cylinder: u32,
    /// The head in use.
    pub head: u32,
}

/// The outcome of an access to the platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// When the first sector to be transferred came under the head.
    pub transfer_start_ns: u64,
    /// When the sector with the lowest address did; later than the first if the read began on arrival.
    pub lowest_start_ns: u64,
    /// When the last one had passed.
    pub end_ns: u64,
    /// Where the arm is then.
    pub arm: Arm,
}

/// Geometry, rotation and seek of one disk. It has no state: each call has the arm's position and the time.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// Where sectors lie. The disks of an array share it: the more of a model's data stay in a processor's cache.
    pub geometry: Arc<Geometry>,
    /// Where the platter is.
    pub rotation: Rotation,
    /// How long the arm moves.
    pub seek: SeekTimes,
    /// Changing to another head of the same cylinder.
    pub head_switch_ns: u64,
    /// Additional seek time of a write over more than one cylinder, to settle more exactly. A step to the next cylinder
    /// is covered by the cylinder skew, or sequential writes would lose a revolution at each cylinder.
    pub write_settle_ns: u64,
    /// Whether a read begins with whichever wanted sector of the track comes first, and takes those before it when they
    /// come round again ("zero latency").
    pub read_on_arrival: bool,
}

impl Mechanism {
    /// How long the arm takes from one track to another, until it can read or write there.
    pub fn move_ns(&self, from: Arm, to: Arm, op: Op) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let settle = if op == Op::Write && distance > 1 { self.write_settle_ns } else { 0 };
        let switch = if from.head == to.head { 0 } else { self.head_switch_ns };
        switch.max(self.seek.time_ns(distance) + settle)
    }

    /// Positioning time from `start_ns` until `first_sector` is under the head: seek and rotation.
    pub fn positioning_ns(&self, start_ns: u64, arm: Arm, first_sector: u64, op: Op) -> u64 {
        let at = self.geometry.locate(first_sector);
        let moved = self.move_ns(arm, at.arm(), op);
        moved + self.rotation.wait_ns(start_ns + moved, self.rotation.sector_start_ns(&at))
    }

    /// How long `sectors` sectors from `first_sector` take from the start of the first to the end of the last, with the
    /// changes of tracks between them. It does not depend on the time.
    pub fn transfer_ns(&self, first_sector: u64, sectors: u64, op: Op) -> u64 {
        self.transfer_from_ns(&self.geometry.locate(first_sector), first_sector, sectors, op)
    }

    /// As [`transfer_ns`](Self::transfer_ns), from the place of the first sector.
    pub(crate) fn transfer_from_ns(&self, at: &Location, first_sector: u64, sectors: u64, op: Op) -> u64 {
        if sectors <= u64::from(at.left_on_track) {
            let (_, sector) = self.rotation.track_angle(at);
            let within_ns = |sector| self.rotation.within_track_ns(sector, at.sectors_per_track);
            return within_ns(sector + sectors as u32) - within_ns(sector);
        }
        let mut steps = self.steps(0, at.arm(), first_sector, op);
        let (mut left, mut first_ns) = (sectors, None);
        loop {
            let step = steps.next_track();
            let first_ns = *first_ns.get_or_insert(step.start_ns);
            let count = left.min(u64::from(step.sectors));
            left -= count;
            steps.now_ns = step.start_ns + self.passing_ns(&step, count as u32);
            if left == 0 {
                return steps.now_ns - first_ns;
            }
        }
    }

    /// Reads or writes `sectors` sectors from `first_sector`, beginning at `start_ns` with the arm at `arm`.
    pub fn access(&self, start_ns: u64, arm: Arm, first_sector: u64, sectors: u64, op: Op) -> Access {
        self.access_when_ready(start_ns, start_ns, arm, first_sector..first_sector + sectors, op)
    }

    /// Reads or writes `sectors` like [`access`](Self::access), but transfers nothing before `ready_ns`.
    pub fn access_when_ready(
        &self,
        start_ns: u64,
        ready_ns: u64,
        arm: Arm,
        sectors: Range<u64>,
        op: Op,
    ) -> Access {
        let on_arrival = self.read_on_arrival && op == Op::Read;
        let mut steps = self.steps(start_ns, arm, sectors.start, op);
        steps.ready_ns = ready_ns;
        let mut starts_ns = None;
        let mut left = sectors.end - sectors.start;
        loop {
            let step = steps.next_track();
            let count = left.min(u64::from(step.sectors));
            let (mut begin_ns, mut end_ns) =
                (step.start_ns, step.start_ns + self.passing_ns(&step, count as u32));
            if on_arrival && let Some(early_ns) = self.arrival_within_ns(&step, count as u32) {
                (begin_ns, end_ns) = (early_ns, early_ns + self.rotation.revolution_ns());
            }
            let (transfer_start_ns, lowest_start_ns) = *starts_ns.get_or_insert((begin_ns, step.start_ns));
            left -= count;
            if left == 0 {
                return Access { transfer_start_ns, lowest_start_ns, end_ns, arm: step.arm };
            }
            steps.now_ns = end_ns;
        }
    }

    /// Reads the tracks of `sectors` one by one, each as a whole and from whichever of its sectors comes first, beginning at
    /// `start_ns` with the arm at `arm`. `read` is called for each track with the end of its revolution, and how many of
    /// `sectors` it has. The transfer starts with the first track; a read from within it takes its whole revolution, too.
    pub fn read_by_track(
        &self,
        start_ns: u64,
        arm: Arm,
        sectors: Range<u64>,
        mut read: impl FnMut(u64, u32),
    ) -> Access {
        let mut steps = self.steps(start_ns, arm, sectors.start, Op::Read);
        let mut transfer_start_ns = None;
        let mut left = sectors.end - sectors.start;
        loop {
            let step = steps.next_track();
            let count = left.min(u64::from(step.sectors));
            let begin_ns = self.next_sector_ns(&step);
            let transfer_start_ns = *transfer_start_ns.get_or_insert(begin_ns);
            steps.now_ns = begin_ns + self.rotation.revolution_ns();
            read(steps.now_ns, count as u32);
            left -= count;
            if left == 0 {
                return Access {
                    transfer_start_ns,
                    lowest_start_ns: transfer_start_ns,
                    end_ns: steps.now_ns,
                    arm: step.arm,
                };
            }
        }
    }

    /// The time under the head of a write that spends a revolution on each whole track, and that of the revolution that it
    /// loses if it begins or ends within a track. `None` for a write of at most a track.
    pub fn revolutions_ns(&self, sectors: Range<u64>) -> Option<[u64; 2]> {
        let first = self.geometry.locate(sectors.start);
        let mut left = sectors.end - sectors.start;
        if left <= u64::from(first.sector + first.left_on_track) {
            return None;
        }
        let mut steps = self.steps(0, first.arm(), sectors.start, Op::Write);
        let mut transfer_ns = 0;
        loop {
            let step = steps.next_track();
            let count = left.min(u64::from(step.sectors));
            transfer_ns += self.passing_ns(&step, count as u32);
            left -= count;
            if left == 0 {
                let is_whole = first.sector == 0 && count == u64::from(step.sectors);
                return Some([transfer_ns, if is_whole { 0 } else { self.rotation.revolution_ns() }]);
            }
        }
    }

    /// Writes `sectors` in `under_head_ns` from the start of the first one, transferring nothing before `ready_ns`.
    pub fn write_by_revolution(
        &self,
        start_ns: u64,
        ready_ns: u64,
        arm: Arm,
        sectors: Range<u64>,
        under_head_ns: u64,
    ) -> Access {
        let mut steps = self.steps(start_ns, arm, sectors.start, Op::Write);
        steps.ready_ns = ready_ns;
        let begin_ns = steps.next_track().start_ns;
        Access {
            transfer_start_ns: begin_ns,
            lowest_start_ns: begin_ns,
            end_ns: begin_ns + under_head_ns,
            arm: self.geometry.locate(sectors.end - 1).arm(),
        }
    }

    /// When the next sector of a step's track begins, wanted or not, after the arm's arrival.
    fn next_sector_ns(&self, step: &Step) -> u64 {
        let revolution = self.rotation.revolution_ns();
        let since_ns = (revolution - (step.start_ns - step.arrived_ns)) % revolution;
        let passed = self.sectors_within(step, since_ns, step.sectors_per_track);
        let next = if self.passing_ns(step, passed) == since_ns { passed } else { passed + 1 };
        step.arrived_ns + self.passing_ns(step, next) - since_ns
    }

    /// If the head arrives on the step's track among the `count` wanted sectors: when the next of them begins.
    fn arrival_within_ns(&self, step: &Step, count: u32) -> Option<u64> {
        let revolution = self.rotation.revolution_ns();
        // How long ago the first wanted sector began.
        let since_ns = (revolution - (step.start_ns - step.arrived_ns)) % revolution;
        if since_ns == 0 || since_ns >= self.passing_ns(step, count) {
            return None;
        }
        let passed = self.sectors_within(step, since_ns, count);
        // The sector under the head has begun already; there must be one after it.
        let next = if self.passing_ns(step, passed) == since_ns { passed } else { passed + 1 };
        (next < count).then(|| step.arrived_ns + self.passing_ns(step, next) - since_ns)
    }

    /// How many whole sectors of a step pass within `time_ns`, at most `count`.
    fn sectors_within(&self, step: &Step, time_ns: u64, count: u32) -> u32 {
        // The division may be one off either way, since sectors start at whole ns.
        let revolution = u128::from(self.rotation.revolution_ns());
        let guess = u128::from(time_ns) * u128::from(step.sectors_per_track) / revolution;
        let mut passed = (guess as u32).min(count);
        while passed > 0 && self.passing_ns(step, passed) > time_ns {
            passed -= 1;
        }
        while passed < count && self.passing_ns(step, passed + 1) <= time_ns {
            passed += 1;
        }
        passed
    }

    /// Progress at `now_ns` of a read that began at `start_ns` with the arm at `arm`, reads from `first_sector` and stops
    /// before `limit`: the first sector that has not passed yet, and the position of the arm.
    pub fn progress(
        &self,
        start_ns: u64,
        arm: Arm,
        first_sector: u64,
        limit: u64,
        now_ns: u64,
    ) -> (u64, Arm) {
        let mut steps = self.steps(start_ns, arm, first_sector, Op::Read);
        let (mut sector, mut arm) = (first_sector, arm);
        while sector < limit {
            let step = steps.next_track();
            if step.start_ns > now_ns {
                break;
            }
            arm = step.arm;
            let count = (limit - sector).min(u64::from(step.sectors)) as u32;
            let end_ns = step.start_ns + self.passing_ns(&step, count);
            if end_ns <= now_ns {
                sector += u64::from(count);
                steps.now_ns = end_ns;
                continue;
            }
            sector += u64::from(self.sectors_within(&step, now_ns - step.start_ns, count));
            break;
        }
        (sector, arm)
    }

    /// How long the first `count` sectors of a step take to pass under the head.
    fn passing_ns(&self, step: &Step, count: u32) -> u64 {
        self.rotation.within_track_ns(step.sector + count, step.sectors_per_track) - step.within_ns
    }

    fn steps(&self, start_ns: u64, arm: Arm, first_sector: u64, op: Op) -> Steps<'_> {
        Steps { mechanism: self, now_ns: start_ns, ready_ns: 0, arm, sector: first_sector, op }
    }
}

impl Location {
    /// The track.
    pub fn arm(&self) -> Arm {
        Arm { cylinder: self.cylinder, head: self.head }
    }
}

/// The part of an access on one track.
struct Step {
    /// When the arm can read or write there.
    arrived_ns: u64,
    /// When the step's first sector comes under the head after that.
    start_ns: u64,
    arm: Arm,
    /// Counted from [`Rotation::track_angle`].
    sector: u32,
    sectors: u32,
    sectors_per_track: u32,
    /// From there to the step's first sector.
    within_ns: u64,
}

/// An access, track by track. The caller sets `now_ns` to the end of the last sector before the next track.
struct Steps<'a> {
    mechanism: &'a Mechanism,
    now_ns: u64,
    ready_ns: u64,
    arm: Arm,
    sector: u64,
    op: Op,
}

impl Steps<'_> {
    /// Moves to the track of the next sector; the step covers what follows on that track.
    fn next_track(&mut self) -> Step {
        let Mechanism { geometry, rotation, .. } = self.mechanism;
        let at = geometry.locate(self.sector);
        let arm = at.arm();
        let arrived_ns = (self.now_ns + self.mechanism.move_ns(self.arm, arm, self.op)).max(self.ready_ns);
        let (track_start_ns, sector) = rotation.track_angle(&at);
        let within_ns = rotation.within_track_ns(sector, at.sectors_per_track);
        let angle_ns = track_start_ns + within_ns;
        let angle_ns =
            if angle_ns < rotation.revolution_ns() { angle_ns } else { angle_ns - rotation.revolution_ns() };
        self.arm = arm;
        self.sector += u64::from(at.left_on_track);
        Step {
            arrived_ns,
            start_ns: arrived_ns + rotation.wait_ns(arrived_ns, angle_ns),
            arm,
            sector,
            sectors: at.left_on_track,
            sectors_per_track: at.sectors_per_track,
            within_ns,
        }
    }
}
