//! Admission of streams, one at a time.

use super::fit::{Failure, fit};
use super::start::window;
use super::{AdmissionError, Draw, Dropped, LoadTable, Placement, Refused, StartPolicy, refused};

/// An admitted stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Start round.
    pub start_round: u64,
    /// Rounds from arrival to start.
    pub waits_rounds: u64,
    /// Dropped blocks, in the order of rounds; none for a deterministic guarantee.
    pub dropped: Vec<Dropped>,
}

/// The admission controller for streams (Wijayaratne and Reddy, sections 2.2 and 3.1).
#[derive(Debug, Clone)]
pub struct Admission {
    table: LoadTable,
    policy: StartPolicy,
    latency_rounds: u32,
    last_start: Option<u64>,
}

impl Admission {
    /// A controller with a load table, a start policy, and the latency target: the maximum number of rounds to wait.
    ///
    /// # Errors
    /// [`StartPolicy::check`].
    pub fn new(
        table: LoadTable,
        policy: StartPolicy,
        latency_rounds: u32,
    ) -> Result<Admission, AdmissionError> {
        policy.check(latency_rounds)?;
        Ok(Admission { table, policy, latency_rounds, last_start: None })
    }

    /// Load table of the disks.
    pub fn table(&self) -> &LoadTable {
        &self.table
    }

    /// Admits a stream that arrives at `now_round` and commits the disks to it, or refuses it and changes nothing.
    /// It may drop `may_drop` blocks: 0 for a deterministic guarantee, [`blocks_of_share`](Self::blocks_of_share)
    /// for a statistical one. Rounds before `now_round` are forgotten.
    ///
    /// Cost: at most `L d` additions for a latency target of `L` rounds and a stream with `d` visits.
    ///
    /// # Errors
    /// [`Refused`] inside if it fits nowhere; outside if the stream is laid out over another number of disks.
    pub fn admit(
        &mut self,
        stream: &Placement,
        now_round: u64,
        may_drop: u64,
        draw: &mut dyn Draw,
    ) -> Result<Result<Admitted, Refused>, AdmissionError> {
        if stream.disks() != self.table.disks() {
            return Err(refused(
                "the number of disks of a stream",
                stream.disks(),
                format!("that of the load table, {}", self.table.disks()),
            ));
        }
        self.table.forget_before(now_round);
        let now_round = now_round.max(self.table.first_round());
        let window = window(self.latency_rounds);
        let (first, stride) = self.policy.first_and_stride(window, now_round, self.last_start, draw);
        let minimal = self.policy == StartPolicy::MinimalLoad;
        let (mut best, mut furthest): (Option<(u64, Admitted)>, Option<Refused>) = (None, None);
        let mut dropped = Vec::new();
        let mut offset = first;
        for _ in 0..window {
            let start_round = now_round + offset;
            match fit(&self.table, stream, start_round, may_drop, &mut dropped, minimal) {
                Ok(load_ns) => {
                    if best.as_ref().is_none_or(|(least_ns, _)| load_ns < *least_ns) {
                        let admitted =
                            Admitted { start_round, waits_rounds: offset, dropped: dropped.clone() };
                        best = Some((load_ns, admitted));
                    }
                    if !minimal {
                        break;
                    }
                }
                Err(failure) if best.is_none() => note(&mut furthest, start_round, failure, window),
                Err(_) => {}
            }
            offset = (offset + stride) % window;
        }
        match (best, furthest) {
            (Some((_, admitted)), _) => {
                self.table.commit(stream, admitted.start_round, &admitted.dropped);
                self.last_start = Some(admitted.start_round);
                Ok(Ok(admitted))
            }
            (None, Some(refused)) => Ok(Err(refused)),
            // A window has at least one round, and that either fits or fails.
            (None, None) => Err(refused("the window of starting rounds", window, "at least 1")),
        }
    }

    /// Number of blocks for a share of a stream's blocks in ppm; rounded down.
    pub fn blocks_of_share(stream: &Placement, share_ppm: u32) -> u64 {
        (u128::from(stream.blocks()) * u128::from(share_ppm) / 1_000_000) as u64
    }
}

fn note(furthest: &mut Option<Refused>, start_round: u64, failure: Failure, tried: u64) {
    let Failure { visit, shortfall_ns } = failure;
    let reached = |refused: &Refused| refused.round - refused.start_round;
    let further = |known: &Refused| {
        let by = (u64::from(visit.round), known.shortfall_ns);
        by > (reached(known), shortfall_ns)
    };
    if furthest.as_ref().is_none_or(further) {
        let round = start_round + u64::from(visit.round);
        *furthest = Some(Refused { start_round, round, disk: visit.disk, shortfall_ns, tried });
    }
}
