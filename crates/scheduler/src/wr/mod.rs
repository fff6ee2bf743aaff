//! The round scheduler of Wijayaratne and Reddy ("Providing QOS guarantees for disk I/O", sections 2.1 and 2.3, Fig. 2).
//!
//! Time is cut into rounds. Periodic requests (real-time classes) that wait at the start of a round complete by its end.
//! Periodic requests and guaranteed aperiodic requests (best-effort classes) are merged in SCAN order and divided into
//! subgroups. Between subgroups interactive requests are served, first come, first served, within the slack of the round;
//! the rest of the round serves all other requests.

mod bucket;
mod groups;
mod round;
#[cfg(test)]
mod tests;

use self::bucket::{Interactive, Limit};
use self::round::{Late, Shares, WrRound};
use crate::entry::Entry;
use crate::policy::Policy;
use crate::request::Class;
use crate::settings::{SettingError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "wr-round",
    label: "Rounds (W.-R.)",
    about: "rounds: periodic and guaranteed aperiodic requests in SCAN order, interactive ones in the slack between \
            subgroups, others in the rest of the round (Wijayaratne and Reddy 1999)",
    promises: "periodic and aperiodic requests that wait at the start of a round complete by its end as far as they fit in \
               their shares, if no request takes longer than its estimate; interactive requests in order of arrival, at \
               the rate of the leaky bucket",
    settings: &[
        ("round_ms", "length of a round; default 500"),
        ("periodic", "share of a round for periodic requests, in %; default 50"),
        (
            "aperiodic",
            "share of a round for aperiodic requests, in %; the rest is for interactive requests; default 25",
        ),
        (
            "subgroup",
            "requests in a subgroup; below 1: fraction of the round's requests; the paper states none; default 4, weir's choice",
        ),
        ("interactive_per_s", "rate of the leaky bucket for interactive requests, per second; default 12"),
        ("burst", "size of the leaky bucket, in requests; default: one second's"),
        (
            "bucket",
            "reading of the leaky bucket (section 2.3). sliding: burst requests in any window of burst / interactive_per_s; \
             fixed: in each window from time 0 on; tokens: a token bucket with this rate and size; default sliding",
        ),
        (
            "late_aperiodic",
            "guaranteed aperiodic requests that arrive within a round. join: into its subgroups while there is slack, as in \
             section 2.1 and Fig. 2; wait: until its periodic requests are served, or for the next round; default join",
        ),
        (
            "late_periodic",
            "periodic requests that arrive within a round. join: into its subgroups within share and slack; wait: for the \
             next round or an idle device, as the paper has them all at the beginning of a round; default join",
        ),
        (
            "estimate",
            "service time. bound: with whole revolutions; expected: with half revolutions, without guarantees; default bound",
        ),
    ],
    build,
};

/// How many requests are in a subgroup.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subgroup {
    Requests(usize),
    Part(f64),
}

fn build(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let round_ms = settings.number("round_ms", 500.0, 0.001, 1e9)?;
    let round_ns = (round_ms * 1e6).round() as u64;
    let periodic = settings.number("periodic", 50.0, 0.0, 100.0)?;
    let aperiodic = settings.number("aperiodic", 25.0, 0.0, 100.0)?;
    if periodic + aperiodic > 100.0 {
        let expected = format!("at most {}, the rest of a round with periodic={periodic}", 100.0 - periodic);
        return Err(SettingError::Value {
            key: "aperiodic".to_owned(),
            value: aperiodic.to_string(),
            expected,
        });
    }
    let subgroup = settings.number("subgroup", 4.0, 1e-6, 1e6)?;
    let subgroup = match subgroup < 1.0 {
        true => Subgroup::Part(subgroup),
        false => Subgroup::Requests(settings.count("subgroup", 4, 1, 1_000_000)? as usize),
    };
    let per_s = settings.number("interactive_per_s", 12.0, 1e-3, 1e6)?;
    let burst = settings.count("burst", per_s.ceil() as u64, 1, 1_000_000)?;
    let bound = settings.word("estimate", &["bound", "expected"])? == "bound";
    let share_ns = |percent: f64| (round_ns as f64 * percent / 100.0).floor() as u64;
    let shares = Shares { round_ns, periodic_ns: share_ns(periodic), aperiodic_ns: share_ns(aperiodic) };
    let limit = match settings.word("bucket", &["sliding", "fixed", "tokens"])? {
        "fixed" => Limit::Fixed,
        "tokens" => Limit::Tokens,
        _ => Limit::Sliding,
    };
    let joins = |key| settings.word(key, &["join", "wait"]).map(|word| word == "join");
    let late = Late { joins_periodic: joins("late_periodic")?, joins_aperiodic: joins("late_aperiodic")? };
    let kinds = classes.iter().map(|class| class.kind).collect();
    let interactive = Interactive::new(limit, per_s, burst);
    Ok(Box::new(WrRound::new(kinds, shares, subgroup, interactive, late, bound)))
}
