//! Clock offset between two hosts, and conversion of times from one clock to the other.

use serde::{Deserialize, Serialize};

/// One question and its answer: the four timestamps of NTP (RFC 5905, section 8), in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The question was sent, on the asker's clock.
    pub sent_ns: i64,
    /// It was received, on the other's.
    pub received_ns: i64,
    /// The answer was sent, on the other's.
    pub replied_ns: i64,
    /// It was received, on the asker's.
    pub heard_ns: i64,
}

/// How far the other's clock is ahead of the asker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Other minus asker, in ns.
    pub offset_ns: i64,
    /// The true offset is at most so far from it: half of the time that question and answer were under way, in ns.
    pub bound_ns: i64,
    /// When that was known, on the asker's clock, in ns.
    pub at_ns: i64,
}

impl Exchange {
    /// The offset that follows; `None` if the timestamps cannot be those of an exchange.
    ///
    /// With the true offset `o`, the question under way for `d1 >= 0` and the answer for `d2 >= 0`, the timestamps give
    /// `o + (d1 - d2) / 2`, which is within `(d1 + d2) / 2` of `o`, however unlike the two ways are.
    pub fn offset(&self) -> Option<Offset> {
        let [sent, received, replied, heard] =
            [self.sent_ns, self.received_ns, self.replied_ns, self.heard_ns].map(i128::from);
        let under_way = (heard - sent) - (replied - received);
        if heard < sent || replied < received || under_way < 0 {
            return None;
        }
        let twice = (received - sent) + (replied - heard);
        Some(Offset {
            offset_ns: i64::try_from(twice.div_euclid(2)).ok()?,
            // Both halves may have lost half a ns.
            bound_ns: i64::try_from((under_way + 1) / 2 + 1).ok()?,
            at_ns: self.heard_ns,
        })
    }
}

impl Offset {
    /// The clock itself.
    pub fn none(at_ns: i64) -> Self {
        Offset { offset_ns: 0, bound_ns: 0, at_ns }
    }

    /// The exchange with the least time under way knows best: the others waited somewhere. `None` without any.
    pub fn best(exchanges: &[Exchange]) -> Option<Self> {
        exchanges.iter().filter_map(Exchange::offset).min_by_key(|offset| offset.bound_ns)
    }
}

/// The coordinator's clock as a host knows it: before a run and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// Before.
    pub start: Offset,
    /// After; absent if the run came to no end.
    pub end: Option<Offset>,
}

impl Clocks {
    /// A time of this host on the coordinator's clock, in ns. Between the two measurements the clocks are taken to drift evenly.
    pub fn to_coordinator_ns(&self, local_ns: i64) -> i64 {
        let moved = self.end.map_or(0, |end| {
            let (elapsed, drifted) = self.since(end);
            if elapsed <= 0 {
                return 0;
            }
            drifted * (i128::from(local_ns) - i128::from(self.start.at_ns)) / elapsed
        });
        let time = i128::from(local_ns) + i128::from(self.start.offset_ns) + moved;
        i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
    }

    /// What the offset changed by, in parts per million of the time between the measurements, and by how much that may be
    /// wrong; `None` if there was but one.
    pub fn drift_ppm(&self) -> Option<(f64, f64)> {
        let end = self.end?;
        let (elapsed, drifted) = self.since(end);
        let unsure = i128::from(self.start.bound_ns) + i128::from(end.bound_ns);
        (elapsed > 0).then(|| {
            let ppm = |ns: i128| ns as f64 / elapsed as f64 * 1e6;
            (ppm(drifted), ppm(unsure))
        })
    }

    /// The larger bound of the two, in ns.
    pub fn bound_ns(&self) -> i64 {
        self.end.map_or(self.start.bound_ns, |end| end.bound_ns.max(self.start.bound_ns))
    }

    fn since(&self, end: Offset) -> (i128, i128) {
        let elapsed = i128::from(end.at_ns) - i128::from(self.start.at_ns);
        (elapsed, i128::from(end.offset_ns) - i128::from(self.start.offset_ns))
    }
}
