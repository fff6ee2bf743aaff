//! Parameters of admission control: which streams request admission, and by which rules they are admitted.
//!
//! Terms and defaults are those of Wijayaratne and Reddy, "Providing QOS guarantees for disk I/O", sections 2.2 to 4.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_scheduler::admission::{Layout, StartPolicy};

/// Level of `stream`: all classes, each as often as it has clients.
pub const MIX: &str = "mix";

/// One level of each parameter of admission control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdmissionSettings {
    /// Reservation for a stream.
    pub rule: AdmissionRule,
    /// Layout of the blocks of a stream on the disks.
    pub layout: StreamLayout,
    /// Size of a block, in KiB.
    pub block_kib: u64,
    /// Order in which starting rounds are tried.
    pub policy: StreamPolicy,
    /// Largest number of rounds that a stream waits.
    pub latency_target_rounds: u32,
    /// Share of the blocks of a stream that may be dropped, in %. The blocks are chosen when the stream is admitted. 0 is
    /// a deterministic guarantee.
    pub drop_pct: f64,
    /// Streams that request admission: the name of a class, or `mix` for all classes, each as often as it has `clients`.
    pub stream: String,
    /// Largest number of streams that request admission. They request it one after the other at time 0, until one is
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Length of a round, in ms.
    pub round_ms: f64,
    /// Share of a round that streams may fill, in %.
    pub share_pct: f64,
    /// Assumed seek distance of each request of a round.
    pub seek: SeekBound,
    /// Assumed rotational delay of each request of a round.
    pub rotation: RotationBound,
    /// Assumed transfer rate of blocks.
    pub transfer: TransferBound,
    /// Factor on frame sizes: 0.125 reads sizes as bits.
    pub frame_scale: f64,
    /// `fixed-distance`: rounds from the start of a stream to the round where the search for the next stream starts.
    pub distance_rounds: u64,
    /// `prime-hopping`: the prime distance between rounds that are tried.
    pub hop_rounds: u64,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        AdmissionSettings {
            rule: AdmissionRule::TraceBased,
            layout: StreamLayout::Bctl,
            block_kib: 64,
            policy: StreamPolicy::RandomStart,
            latency_target_rounds: 300,
            drop_pct: 0.0,
            stream: MIX.to_owned(),
            streams: None,
            round_ms: 500.0,
            share_pct: 100.0,
            seek: SeekBound::Sweep,
            rotation: RotationBound::Whole,
            transfer: TransferBound::Lowest,
            frame_scale: 1.0,
            distance_rounds: 7,
            hop_rounds: 17,
        }
    }
}

/// Levels of parameters of admission control: each field is a factor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmissionFactors {
    /// Reservation for a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Vec<AdmissionRule>>,
    /// Layout of the blocks of a stream on the disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Vec<StreamLayout>>,
    /// Size of a block, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_kib: Option<Vec<u64>>,
    /// Order in which starting rounds are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<StreamPolicy>>,
    /// Largest number of rounds that a stream waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target_rounds: Option<Vec<u32>>,
    /// Share of the blocks of a stream that may be dropped, in %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_pct: Option<Vec<f64>>,
    /// Streams that request admission: names of classes, or `mix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Vec<String>>,
    /// Largest number of streams that request admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<u32>>,
    /// Length of a round, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_ms: Option<Vec<f64>>,
    /// Share of a round that streams may fill, in %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<Vec<f64>>,
    /// Assumed seek distance of each request of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek: Option<Vec<SeekBound>>,
    /// Assumed rotational delay of each request of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Vec<RotationBound>>,
    /// Assumed transfer rate of blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Vec<TransferBound>>,
    /// Factor on frame sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_scale: Option<Vec<f64>>,
    /// `fixed-distance`: rounds from the start of a stream to the round where the search for the next stream starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_rounds: Option<Vec<u64>>,
    /// `prime-hopping`: the prime distance between rounds that are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_rounds: Option<Vec<u64>>,
}

/// Reservation for a stream (section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionRule {
    /// In each round, the need of that round.
    TraceBased,
    /// In each round, the need of the round with the highest need.
    PeakRate,
}

/// Layout of the blocks of a stream on the disks (section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamLayout {
    /// Constant data length: consecutive blocks on consecutive disks.
    Cdl,
    /// Block-constrained constant time length: the blocks of a round on one disk, those of the next round on the next
    /// disk.
    Bctl,
}

/// Order in which starting rounds are tried (section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamPolicy {
    /// Starts at the round of arrival.
    Greedy,
    /// Starts at a random round.
    RandomStart,
    /// Starts at the round in which the last stream started.
    LastScheduled,
    /// Starts at a fixed distance after the round in which the last stream started.
    FixedDistance,
    /// The round that makes the highest load of any round lowest.
    MinimalLoad,
    /// A random round, then rounds at multiples of a prime distance after it.
    PrimeHopping,
}

/// Assumed seek distance of each request of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeekBound {
    /// Requests at equal distances on one sweep over all cylinders: the worst case of a sweep.
    Sweep,
    /// Each request seeks over all cylinders: the worst case without a sweep.
    Longest,
}

/// Assumed rotational delay of each request of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RotationBound {
    /// A whole revolution: the worst case.
    Whole,
    /// Half a revolution: the mean. No guarantee.
    Half,
}

/// Assumed transfer rate of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransferBound {
    /// Rate of the innermost zone: the worst case.
    Lowest,
    /// Mean rate over the whole disk, without seeks. No guarantee.
    Mean,
    /// Rate of the outermost zone. No guarantee.
    Highest,
}

impl StreamLayout {
    /// As the controller has it.
    pub fn layout(self) -> Layout {
        match self {
            StreamLayout::Cdl => Layout::Cdl,
            StreamLayout::Bctl => Layout::Bctl,
        }
    }
}

impl AdmissionSettings {
    /// The policy, as the controller has it.
    pub fn start_policy(&self) -> StartPolicy {
        match self.policy {
            StreamPolicy::Greedy => StartPolicy::Greedy,
            StreamPolicy::RandomStart => StartPolicy::RandomStart,
            StreamPolicy::LastScheduled => StartPolicy::LastScheduled,
            StreamPolicy::FixedDistance => StartPolicy::FixedDistance(self.distance_rounds),
            StreamPolicy::MinimalLoad => StartPolicy::MinimalLoad,
            StreamPolicy::PrimeHopping => StartPolicy::PrimeHopping(self.hop_rounds),
        }
    }

    /// Length of a round, in ns.
    pub fn round_ns(&self) -> u64 {
        (self.round_ms * 1e6).round() as u64
    }

    /// The part of a round that streams may fill, in ns.
    pub fn capacity_ns(&self) -> u64 {
        (self.round_ns() as f64 * self.share_pct / 100.0).floor() as u64
    }

    /// What is wrong with them by themselves: fields and messages.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut within = |field, value: f64, low: f64, high: f64| {
            if !(low..=high).contains(&value) {
                problems.push((field, format!("is {value}; it must be from {low} to {high}")));
            }
        };
        within("block_kib", self.block_kib as f64, 1.0, 65536.0);
        within("latency_target_rounds", f64::from(self.latency_target_rounds), 0.0, 1e6);
        within("drop_pct", self.drop_pct, 0.0, 100.0);
        within("streams", f64::from(self.streams.unwrap_or(1)), 1.0, 1e6);
        within("round_ms", self.round_ms, 1.0, 1e6);
        within("share_pct", self.share_pct, 0.1, 100.0);
        within("frame_scale", self.frame_scale, 1e-6, 1e6);
        within("distance_rounds", self.distance_rounds as f64, 0.0, 1e9);
        if let Err(error) = self.start_policy().check(self.latency_target_rounds) {
            problems.push(("hop_rounds", format!("does not fit latency_target_rounds: {error}")));
        }
        problems
    }
}
