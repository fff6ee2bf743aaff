//! What a study says about admission control: which streams ask, and by which rules they are let in.
//!
//! Terms and defaults are those of Wijayaratne and Reddy, "Providing QOS guarantees for disk I/O", sections 2.2 to 4.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_scheduler::admission::{Layout, StartPolicy};

/// All kinds of streams, each asking as often as its class has clients.
pub const MIX: &str = "mix";

/// The level of each parameter of admission control that a run finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdmissionSettings {
    /// What is reserved for a stream.
    pub rule: AdmissionRule,
    /// Where a stream's blocks lie.
    pub layout: StreamLayout,
    /// Size of a block, in KiB.
    pub block_kib: u64,
    /// In which order starting rounds are tried.
    pub policy: StreamPolicy,
    /// How many rounds a stream waits at most.
    pub latency_target_rounds: u32,
    /// Share of its blocks that a stream may go without, in %, chosen when it is admitted; 0 is a deterministic guarantee.
    pub drop_pct: f64,
    /// Which streams ask: the name of a class, or `mix` for all classes, each as often as it has `clients`.
    pub stream: String,
    /// How many streams ask at most. They ask one after the other, all at time 0, until one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Length of a round, in ms.
    pub round_ms: f64,
    /// Share of a round that streams may fill, in %.
    pub share_pct: f64,
    /// Over which distance each request of a round is assumed to seek.
    pub seek: SeekBound,
    /// How long each request of a round is assumed to wait for its sector.
    pub rotation: RotationBound,
    /// How fast blocks are assumed to be transferred.
    pub transfer: TransferBound,
    /// Bytes that a byte of a frame's size stands for: 0.125 reads sizes as bits.
    pub frame_scale: f64,
    /// `fixed-distance`: rounds from the start of one stream to where the search for the next one begins.
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
    /// What is reserved for a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Vec<AdmissionRule>>,
    /// Where a stream's blocks lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Vec<StreamLayout>>,
    /// Size of a block, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_kib: Option<Vec<u64>>,
    /// In which order starting rounds are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<StreamPolicy>>,
    /// How many rounds a stream waits at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target_rounds: Option<Vec<u32>>,
    /// Share of its blocks that a stream may go without, in %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_pct: Option<Vec<f64>>,
    /// Which streams ask: names of classes, or `mix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Vec<String>>,
    /// How many streams ask at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<u32>>,
    /// Length of a round, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_ms: Option<Vec<f64>>,
    /// Share of a round that streams may fill, in %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<Vec<f64>>,
    /// Over which distance each request of a round is assumed to seek.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek: Option<Vec<SeekBound>>,
    /// How long each request of a round is assumed to wait for its sector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Vec<RotationBound>>,
    /// How fast blocks are assumed to be transferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Vec<TransferBound>>,
    /// Bytes that a byte of a frame's size stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_scale: Option<Vec<f64>>,
    /// `fixed-distance`: rounds from the start of one stream to where the search for the next one begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_rounds: Option<Vec<u64>>,
    /// `prime-hopping`: the prime distance between rounds that are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_rounds: Option<Vec<u64>>,
}

/// What is reserved for a stream (section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionRule {
    /// In each round what it needs there.
    TraceBased,
    /// In each round what it needs in the round that needs most.
    PeakRate,
}

/// Where a stream's blocks lie (section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamLayout {
    /// Constant data length: block after block on disk after disk.
    Cdl,
    /// Block-constrained constant time length: a round's blocks on one disk, the next round's on the next.
    Bctl,
}

/// In which order starting rounds are tried (section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamPolicy {
    /// From the round of arrival on.
    Greedy,
    /// From a random round on.
    RandomStart,
    /// From the round on with which the last stream began.
    LastScheduled,
    /// From a fixed distance behind the round with which the last stream began.
    FixedDistance,
    /// The round with which the highest load becomes lowest.
    MinimalLoad,
    /// A random round and those at multiples of a prime distance behind it.
    PrimeHopping,
}

/// Over which distance each request of a round is assumed to seek.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeekBound {
    /// The requests lie at equal distances along one sweep over all cylinders: the worst of all sweeps.
    Sweep,
    /// Each seeks over all cylinders: the worst without a sweep.
    Longest,
}

/// How long each request of a round is assumed to wait for its sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RotationBound {
    /// A whole revolution: the worst.
    Whole,
    /// Half a revolution: the mean, which is no guarantee.
    Half,
}

/// How fast blocks are assumed to be transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransferBound {
    /// At the innermost zone's rate: the worst.
    Lowest,
    /// At the rate of the whole disk read through, without the arm's movements, which is no guarantee.
    Mean,
    /// At the outermost zone's rate, which is no guarantee.
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
