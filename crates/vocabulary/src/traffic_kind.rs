//! Kind of the traffic of a class.

/// Kind of the traffic of a class, for schedulers that treat classes differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "text", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "text", serde(rename_all = "snake_case"))]
pub enum TrafficKind {
    /// Requests with deadlines. Completion before the deadline is enough.
    RealTime,
    /// Requests with low response times.
    Interactive,
    /// Best-effort requests with high throughput.
    #[cfg_attr(feature = "text", serde(rename = "throughput"))]
    BestEffort,
}

#[cfg(all(test, feature = "text"))]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_studies_and_servers_stay() {
        for (kind, word) in [
            (TrafficKind::RealTime, "\"real_time\""),
            (TrafficKind::Interactive, "\"interactive\""),
            (TrafficKind::BestEffort, "\"throughput\""),
        ] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), word);
            assert_eq!(serde_json::from_str::<TrafficKind>(word).unwrap(), kind);
        }
    }
}
