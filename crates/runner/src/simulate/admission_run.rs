//! Run of admission control without a server: `admission.json`, and `load.json` if the study keeps the load.

use std::path::Path;

use serde_json::{Map, Value, json};
use weir_study::{AdmissionSettings, Records, Run};

use super::admission::{AdmittedStreams, Stream, admit_streams};
use crate::Error;
use crate::context::write_json;

/// Carries out the run and writes its results to the run's folder.
///
/// # Errors
/// As [`admit_streams`], or the folder cannot be written.
pub(super) fn carry_out(run: &Run, folder: &Path) -> Result<AdmittedStreams, Error> {
    let settings = settings_of(run)?;
    let found = admit_streams(run, settings)?;
    write_json(&folder.join("admission.json"), &document(run, settings, &found))?;
    if run.records == Records::Requests {
        write_json(&folder.join("load.json"), &load(run, settings, &found))?;
    }
    Ok(found)
}

/// The parameters of a run that admits streams.
///
/// # Errors
/// The run has no admission settings.
pub(super) fn settings_of(run: &Run) -> Result<&AdmissionSettings, Error> {
    let none =
        || Error::Refused("the run has no admission settings. Add `admission` to the study".to_owned());
    run.settings.admission.as_ref().ok_or_else(none)
}

/// Result of admission control: `admission.json`.
pub(super) fn document(run: &Run, settings: &AdmissionSettings, found: &AdmittedStreams) -> Value {
    let classes: Map<String, Value> = run
        .classes
        .iter()
        .enumerate()
        .filter(|(number, _)| found.asked[*number] > 0)
        .map(|(number, class)| {
            let of_class: Vec<&Stream> =
                found.streams.iter().filter(|stream| stream.class == number).collect();
            let mut part = streams(&of_class);
            part.insert("asked".to_owned(), json!(found.asked[number]));
            (class.name.clone(), Value::Object(part))
        })
        .collect();
    let all: Vec<&Stream> = found.streams.iter().collect();
    let mut document = Map::from_iter([
        ("format".to_owned(), json!(1)),
        ("asked".to_owned(), json!(found.asked.iter().sum::<u32>())),
    ]);
    document.extend(streams(&all));
    document.insert("refused".to_owned(), json!(found.refused.as_ref().map(ToString::to_string)));
    let waits: Vec<u64> = all.iter().map(|stream| stream.admitted.waits_rounds).collect();
    document.insert("startup_rounds".to_owned(), json!(waits));
    document.insert("utilisation".to_owned(), utilisation(settings, found));
    document.insert("classes".to_owned(), Value::Object(classes));
    Value::Object(document)
}

fn streams(streams: &[&Stream]) -> Map<String, Value> {
    let mut waits: Vec<u64> = streams.iter().map(|stream| stream.admitted.waits_rounds).collect();
    waits.sort_unstable();
    let mean = (!waits.is_empty()).then(|| waits.iter().sum::<u64>() as f64 / waits.len() as f64);
    let dropped = |stream: &&Stream| {
        stream.admitted.dropped.iter().map(|dropped| u64::from(dropped.blocks)).sum::<u64>()
    };
    Map::from_iter([
        ("admitted".to_owned(), json!(streams.len())),
        ("startup_mean_rounds".to_owned(), json!(mean)),
        ("startup_median_rounds".to_owned(), json!(waits.get(waits.len() / 2))),
        ("startup_max_rounds".to_owned(), json!(waits.last())),
        ("blocks".to_owned(), json!(streams.iter().map(|stream| stream.blocks).sum::<u64>())),
        ("dropped_blocks".to_owned(), json!(streams.iter().map(dropped).sum::<u64>())),
    ])
}

/// Shares of the disks' time that streams need in the worst case: over all rounds until the last stream ends, and over those
/// in which all streams play.
fn utilisation(settings: &AdmissionSettings, found: &AdmittedStreams) -> Value {
    let table = &found.table;
    let mean = |disks: std::ops::Range<u32>, rounds: std::ops::Range<u64>| {
        let cells = u64::from(disks.end - disks.start) * rounds.end.saturating_sub(rounds.start);
        let load_ns: u128 = rounds
            .flat_map(|round| disks.clone().map(move |disk| (disk, round)))
            .map(|(disk, round)| u128::from(table.load_ns(disk, round)))
            .sum();
        (cells > 0).then(|| load_ns as f64 / cells as f64 / settings.round_ns() as f64)
    };
    let ends = |stream: &Stream| stream.admitted.start_round + stream.demand.rounds() as u64;
    let all_begun = found.streams.iter().map(|stream| stream.admitted.start_round).max().unwrap_or(0);
    let first_end = found.streams.iter().map(ends).min().unwrap_or(0);
    let end = table.end_round();
    let by_disk: Vec<Option<f64>> = (0..table.disks()).map(|disk| mean(disk..disk + 1, 0..end)).collect();
    json!({
        "rounds": end,
        "mean": mean(0..table.disks(), 0..end),
        "by_disk": by_disk,
        "playing_rounds": first_end.saturating_sub(all_begun),
        "playing_mean": mean(0..table.disks(), all_begun..first_end.max(all_begun)),
    })
}

/// Load of each disk in each round, in ppm of a round, and demand of a stream of each class.
fn load(run: &Run, settings: &AdmissionSettings, found: &AdmittedStreams) -> Value {
    let table = &found.table;
    let ppm = |disk, round| {
        (u128::from(table.load_ns(disk, round)) * 1_000_000 / u128::from(settings.round_ns().max(1))) as u64
    };
    let of_disk = |disk| (0..table.end_round()).map(|round| ppm(disk, round)).collect::<Vec<u64>>();
    let disks: Vec<Vec<u64>> = (0..table.disks()).map(of_disk).collect();
    let demand: Map<String, Value> = found
        .streams
        .iter()
        .map(|stream| (run.classes[stream.class].name.clone(), json!(stream.demand.blocks())))
        .collect();
    json!({"format": 1, "unit": "ppm of a round", "disks": disks, "demand_blocks": demand})
}
