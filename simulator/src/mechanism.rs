//! The moving parts: how long the arm, the platter and the heads take to reach and transfer a run of sectors.

use crate::device::Op;
use crate::geometry::Geometry;
use crate::rotation::Rotation;
use crate::seek::SeekCurve;

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
    /// When the first sector came under the head.
    pub transfer_start_ns: u64,
    /// When the last sector had passed.
    pub end_ns: u64,
    /// Where the arm is then.
    pub arm: Arm,
}

/// Geometry, rotation and seek of one disk. It has no state: the arm's place and the time are given to each call.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// Where sectors lie.
    pub geometry: Geometry,
    /// Where the platter is.
    pub rotation: Rotation,
    /// How long the arm moves.
    pub seek: SeekCurve,
    /// Changing to another head of the same cylinder.
    pub head_switch_ns: u64,
    /// What a write adds to a seek of more than one cylinder, to settle more exactly. A step to the next cylinder is
    /// covered by the cylinder skew, or sequential writes would lose a revolution at each cylinder.
    pub write_settle_ns: u64,
}

impl Mechanism {
    /// How long the arm takes from one track to another, until it can read or write there.
    pub fn move_ns(&self, from: Arm, to: Arm, op: Op) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let settle = if op == Op::Write && distance > 1 { self.write_settle_ns } else { 0 };
        let switch = if from.head == to.head { 0 } else { self.head_switch_ns };
        switch.max(self.seek.time_ns(distance) + settle)
    }

    /// How long after `start_ns` the first of the sectors from `first_sector` comes under the head: seek and rotation.
    pub fn positioning_ns(&self, start_ns: u64, arm: Arm, first_sector: u64, op: Op) -> u64 {
        let at = self.geometry.locate(first_sector);
        let moved = self.move_ns(arm, Arm { cylinder: at.cylinder, head: at.head }, op);
        moved + self.rotation.wait_ns(start_ns + moved, self.rotation.sector_start_ns(&at))
    }

    /// Reads or writes `sectors` sectors from `first_sector`, beginning at `start_ns` with the arm at `arm`.
    pub fn access(&self, start_ns: u64, arm: Arm, first_sector: u64, sectors: u64, op: Op) -> Access {
        let mut steps = self.steps(start_ns, arm, first_sector, op);
        let mut transfer_start_ns = None;
        let mut left = sectors;
        loop {
            let step = steps.next_track();
            transfer_start_ns.get_or_insert(step.start_ns);
            let count = left.min(u64::from(step.sectors));
            left -= count;
            if left == 0 {
                let end_ns = step.start_ns + self.passing_ns(&step, count as u32);
                return Access {
                    transfer_start_ns: transfer_start_ns.unwrap_or(start_ns),
                    end_ns,
                    arm: step.arm,
                };
            }
        }
    }

    /// How far a read has come at `now_ns` that began at `start_ns` with the arm at `arm`, wants the sectors from
    /// `first_sector` and stops before `limit`: the first sector that has not passed yet, and where the arm is.
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
            if step.start_ns + self.passing_ns(&step, count) <= now_ns {
                sector += u64::from(count);
                continue;
            }
            // The last whole sector that has passed; the division may be one off either way, since sectors start at whole ns.
            let revolution = self.rotation.revolution_ns;
            let guess = (now_ns - step.start_ns) as u128 * u128::from(step.sectors_per_track)
                / u128::from(revolution);
            let mut passed = (guess as u32).min(count);
            while passed > 0 && step.start_ns + self.passing_ns(&step, passed) > now_ns {
                passed -= 1;
            }
            while passed < count && step.start_ns + self.passing_ns(&step, passed + 1) <= now_ns {
                passed += 1;
            }
            sector += u64::from(passed);
            break;
        }
        (sector, arm)
    }

    /// How long the first `count` sectors of a step take to pass under the head.
    fn passing_ns(&self, step: &Step, count: u32) -> u64 {
        self.rotation.within_track_ns(step.sector + count, step.sectors_per_track)
            - self.rotation.within_track_ns(step.sector, step.sectors_per_track)
    }

    fn steps(&self, start_ns: u64, arm: Arm, first_sector: u64, op: Op) -> Steps<'_> {
        Steps { mechanism: self, now_ns: start_ns, arm, sector: first_sector, op }
    }
}

/// The part of an access that lies on one track.
struct Step {
    start_ns: u64,
    arm: Arm,
    sector: u32,
    sectors: u32,
    sectors_per_track: u32,
}

/// An access, track by track.
struct Steps<'a> {
    mechanism: &'a Mechanism,
    now_ns: u64,
    arm: Arm,
    sector: u64,
    op: Op,
}

impl Steps<'_> {
    /// Moves to the track of the next sector; the step covers the rest of that track.
    fn next_track(&mut self) -> Step {
        let at = self.mechanism.geometry.locate(self.sector);
        let start_ns =
            self.now_ns + self.mechanism.positioning_ns(self.now_ns, self.arm, self.sector, self.op);
        let arm = Arm { cylinder: at.cylinder, head: at.head };
        let step = Step {
            start_ns,
            arm,
            sector: at.sector,
            sectors: at.sectors_per_track - at.sector,
            sectors_per_track: at.sectors_per_track,
        };
        self.now_ns = start_ns + self.mechanism.passing_ns(&step, step.sectors);
        self.arm = arm;
        self.sector += u64::from(step.sectors);
        step
    }
}
