//! Clock offset between two hosts, and conversion of times from one clock to the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One clock exchange: the four timestamps of NTP (RFC 5905, section 8), in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Request sent, on the requester's clock.
    pub sent_ns: i64,
    /// Request received, on the other clock.
    pub received_ns: i64,
    /// Reply sent, on the other clock.
    pub replied_ns: i64,
    /// Reply received, on the requester's clock.
    pub heard_ns: i64,
}

/// Offset of the other host's clock from the requester's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offset {
    /// Other clock minus the requester's, in ns.
    pub offset_ns: i64,
    /// Bound of the error: half of the round-trip time, in ns.
    pub bound_ns: i64,
    /// Time of the measurement, on the requester's clock, in ns.
    pub at_ns: i64,
}

impl Exchange {
    /// Offset of this exchange; `None` if the timestamps are impossible.
    ///
    /// With true offset `o` and transit times `d1 >= 0` of the request and `d2 >= 0` of the reply, the timestamps give
    /// `o + (d1 - d2) / 2`, which is within `(d1 + d2) / 2` of `o`, also if `d1` and `d2` differ.
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
            // Each half may be truncated by half a ns.
            bound_ns: i64::try_from((under_way + 1) / 2 + 1).ok()?,
            at_ns: self.heard_ns,
        })
    }
}

impl Offset {
    /// Offset of the clock from itself.
    pub fn none(at_ns: i64) -> Self {
        Offset { offset_ns: 0, bound_ns: 0, at_ns }
    }

    /// Offset of the exchange with the shortest round trip, which has the smallest bound. `None` without exchanges.
    pub fn best(exchanges: &[Exchange]) -> Option<Self> {
        exchanges.iter().filter_map(Exchange::offset).min_by_key(|offset| offset.bound_ns)
    }
}

/// Offsets of the coordinator's clock, before and after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Offset before the run.
    pub start: Offset,
    /// Offset after the run; absent if the run did not end.
    pub end: Option<Offset>,
}

impl Clocks {
    /// Converts a time of this host to the coordinator's clock, in ns. Drift is spread evenly between the two measurements.
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

    /// Drift of the offset, in parts per million of the time between the measurements, and the bound of its error; `None` with
    /// one measurement.
    pub fn drift_ppm(&self) -> Option<(f64, f64)> {
        let end = self.end?;
        let (elapsed, drifted) = self.since(end);
        let unsure = i128::from(self.start.bound_ns) + i128::from(end.bound_ns);
        (elapsed > 0).then(|| {
            let ppm = |ns: i128| ns as f64 / elapsed as f64 * 1e6;
            (ppm(drifted), ppm(unsure))
        })
    }

    /// Larger bound of both offsets, in ns.
    pub fn bound_ns(&self) -> i64 {
        self.end.map_or(self.start.bound_ns, |end| end.bound_ns.max(self.start.bound_ns))
    }

    fn since(&self, end: Offset) -> (i128, i128) {
        let elapsed = i128::from(end.at_ns) - i128::from(self.start.at_ns);
        (elapsed, i128::from(end.offset_ns) - i128::from(self.start.offset_ns))
    }
}
