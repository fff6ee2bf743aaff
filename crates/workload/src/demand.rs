//! Demand of a workload, estimated from its specification.

use crate::limits::{CLIENT_BYTES, Demand, FILE_BYTES, FRAME_BYTES, SERVER_DISK_BYTES};
use crate::sessions::{AnyWorkload, SessionWorkload, Think};
use crate::spec::{Arrivals, Distribution, FrameSource, MmppState, Sizes, SyntheticFrames, Workload};

/// Number of equal slices of a distribution, represented by their middles.
const SLICES: u32 = 256;
/// Assumed least response time of a closed loop, in seconds.
const CLOSED_LOOP_S: f64 = 1e-3;
/// Seconds of a day.
const DAY_S: f64 = 86_400.0;

impl Distribution {
    /// Estimated mean size, in bytes.
    fn mean_bytes(&self) -> f64 {
        let middle = |slice: u32| (f64::from(slice) + 0.5) / f64::from(SLICES);
        (0..SLICES).map(|slice| self.quantile(middle(slice)) as f64).sum::<f64>() / f64::from(SLICES)
    }
}

impl Workload {
    /// Demand of a number of clients in a duration.
    pub fn demand(&self, clients: u32, duration_s: f64) -> Demand {
        let clients = f64::from(clients);
        let file_bytes = f64::from(self.files.count) * self.files.size.mean_bytes();
        let movies_bytes = self.kept_frames() * FRAME_BYTES;
        Demand {
            requests: clients * (self.accesses_per_s() * duration_s).max(0.0) * self.blocks_per_access(),
            memory_bytes: clients * self.client_bytes()
                + f64::from(self.files.count) * FILE_BYTES
                + movies_bytes,
            file_bytes,
        }
    }

    /// Size of the largest request before it is cut into blocks, in bytes.
    pub fn largest_request_bytes(&self) -> u64 {
        let file_bytes = self.files.size.largest();
        match &self.sizes {
            Sizes::Drawn(sizes) => sizes.largest().min(file_bytes),
            _ => file_bytes,
        }
    }

    fn client_bytes(&self) -> f64 {
        match &self.arrivals {
            Arrivals::ServerDay(day) => CLIENT_BYTES + day.asked().len() as f64 * SERVER_DISK_BYTES,
            _ => CLIENT_BYTES,
        }
    }

    /// Frames of movies that a run makes once and keeps.
    fn kept_frames(&self) -> f64 {
        let length = |model: &SyntheticFrames| f64::from(model.length_frames.unwrap_or(0));
        match &self.sizes {
            Sizes::Frames(frames) => match &frames.source {
                FrameSource::Synthetic(model) => length(model),
                FrameSource::Movies(models) => models.iter().map(length).sum(),
                FrameSource::File { .. } => 0.0,
            },
            _ => 0.0,
        }
    }

    /// Mean request rate of one client, per second.
    fn accesses_per_s(&self) -> f64 {
        match &self.arrivals {
            Arrivals::Poisson { rate_per_s } => rate_per_s / self.time_scale,
            Arrivals::Periodic { interval_ms: ms, .. } | Arrivals::Rounds { round_ms: ms, .. } => {
                1e3 / ms / self.time_scale
            }
            Arrivals::OnOff { rate_per_s, on, off } => {
                rate_per_s * on.mean_s() / (on.mean_s() + off.mean_s()) / self.time_scale
            }
            Arrivals::Mmpp { states } => mmpp_rate(states) / self.time_scale,
            Arrivals::ServerDay(day) => {
                day.asked().iter().map(|(_, disk)| f64::from(disk.requests)).sum::<f64>() / DAY_S
            }
            // Known when the recording has been read: `Stream::new` looks then.
            Arrivals::Recorded(_) => 0.0,
            Arrivals::Closed { depth, think_us, rate_per_s, .. } => {
                let by_answers = f64::from(*depth) / (*think_us as f64 * 1e-6 + CLOSED_LOOP_S);
                rate_per_s.map_or(by_answers, |rate_per_s| rate_per_s.min(by_answers))
            }
        }
    }

    /// Requests that an access is cut into, on average.
    fn blocks_per_access(&self) -> f64 {
        let Some(block_bytes) = self.block_bytes else { return 1.0 };
        let file_bytes = || self.files.size.mean_bytes();
        let bytes = match &self.sizes {
            Sizes::WholeFile | Sizes::Accesses { .. } => file_bytes(),
            Sizes::Drawn(sizes) => sizes.mean_bytes(),
            Sizes::Frames(frames) => {
                let round_s = 1.0 / self.accesses_per_s().max(1e-9);
                let mean_bytes = match &frames.source {
                    FrameSource::Synthetic(model) => model.mean_bytes * model.bytes_per_unit,
                    FrameSource::Movies(models) => {
                        let sum: f64 = models.iter().map(|m| m.mean_bytes * m.bytes_per_unit).sum();
                        sum / models.len().max(1) as f64
                    }
                    FrameSource::File { .. } => 0.0,
                };
                (frames.rate_hz * round_s * mean_bytes).min(self.files.size.largest() as f64)
            }
            Sizes::Recorded => 0.0,
        };
        (bytes / block_bytes as f64).max(1.0)
    }
}

/// Mean rate of a Markov-modulated Poisson process; see `arrivals::begin_mmpp` for its stationary shares.
fn mmpp_rate(states: &[MmppState]) -> f64 {
    let sum: f64 = states.iter().map(|state| state.weight).sum();
    let time = |state: &MmppState| state.weight * (sum - state.weight) * state.stay_s;
    let whole: f64 = states.iter().map(time).sum();
    states.iter().map(|state| time(state) * state.rate_per_s).sum::<f64>() / whole.max(f64::MIN_POSITIVE)
}

impl SessionWorkload {
    /// Demand of `clients` clients in a duration, without response times.
    pub fn demand(&self, clients: u32, duration_s: f64) -> Demand {
        let think_s = match self.sessions.think {
            Think::Exponential { mean_ms, longest_ms, .. } => mean_ms.min(longest_ms) * 1e-3,
            // The shortest in a table may be 0; one second is the think time of a hurried person.
            Think::WaitingTimes { scale } => scale,
            Think::Fixed { ms } => ms * 1e-3,
        };
        let clients = f64::from(clients);
        Demand {
            requests: clients * (duration_s / think_s.max(CLOSED_LOOP_S)).max(0.0),
            memory_bytes: clients * CLIENT_BYTES,
            file_bytes: 0.0,
        }
    }
}

impl AnyWorkload {
    /// Demand of a number of clients in a duration.
    pub fn demand(&self, clients: u32, duration_s: f64) -> Demand {
        match self {
            AnyWorkload::Requests(workload) => workload.demand(clients, duration_s),
            AnyWorkload::Sessions(workload) => workload.demand(clients, duration_s),
        }
    }
}
