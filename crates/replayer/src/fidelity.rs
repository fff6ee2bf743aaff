//! Fidelity of a replay: lateness, and stretching of the schedule.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use weir_host::thread::Scheduling;

use crate::Error;
use crate::certificate::{ByRate, Certificate};
use crate::submission::Submission;
use crate::target::{Kind, Target};

/// Use of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// The target as it was named.
    pub path: String,
    /// Kind of target.
    pub kind: Kind,
    /// Files opened: 1 unless it is a directory.
    pub files: usize,
    /// Whether every transfer bypassed the page cache.
    pub direct: bool,
    /// Notes on its use; empty if there are none.
    pub note: String,
    /// Requests that were enlarged to the alignment of direct transfers.
    pub rounded: u64,
    /// Requests sent to kernel worker threads because direct submission had blocked.
    pub handed_to_workers: u64,
}

/// Fidelity of a replay. Times in ns; lateness counts from the absolute intended time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// The instant of `CLOCK_MONOTONIC` that all times are relative to.
    pub epoch_monotonic_ns: i64,
    /// Requests in the stream.
    pub planned: u64,
    /// Requests handed to the kernel.
    pub sent: u64,
    /// Requests whose completion was seen, including failures.
    pub completed: u64,
    /// Requests that completed with an error, a short transfer or wrong data.
    pub failed: u64,
    /// Failed requests by `errno`: `EIO` includes short transfers, `EBADMSG` is wrong data.
    pub errors: BTreeMap<i32, u64>,
    /// Requests still outstanding after the grace time.
    pub unfinished: u64,
    /// Requests that could not be sent: no target, or past its end.
    pub refused: u64,
    /// Requests not sent because the replay was stopped.
    pub stopped: u64,
    /// Median of (submitted - intended), of the requests after the warm-up.
    pub lateness_median_ns: u64,
    /// 99th percentile of the same.
    pub lateness_p99_ns: u64,
    /// 99.9th percentile of the same.
    pub lateness_p999_ns: u64,
    /// Maximum of the same.
    pub lateness_max_ns: u64,
    /// Median time of the submission call.
    pub handover_median_ns: u64,
    /// 99th percentile of the same.
    pub handover_p99_ns: u64,
    /// Maximum of the same.
    pub handover_max_ns: u64,
    /// (last submitted - first) / (last intended - first) - 1; `None` below two distinct times.
    pub span_error: Option<f64>,
    /// CPU time of the pacing thread, s (the device's own work is not in it).
    pub cpu_seconds: f64,
    /// Most requests outstanding at once.
    pub max_in_flight: u64,
    /// Requests that were late because the memory for data in flight was used up.
    pub held_back: u64,
    /// Number of times that read-ahead was too slow.
    pub starved: u64,
    /// Number of times that the completion queue was full (no loss, but late timestamps).
    pub queue_overflows: u64,
    /// Scheduling class of the pacing thread.
    pub scheduling: Scheduling,
    /// How requests were handed to the kernel.
    pub submission: Submission,
    /// How far the timing may be trusted.
    pub certificate: Certificate,
    /// Each target, in the order of first mention.
    pub targets: Vec<TargetReport>,
}

impl Fidelity {
    /// Merges two simultaneous replays: counts are added, and the larger lateness is kept.
    #[must_use]
    pub fn and(mut self, other: Fidelity) -> Self {
        self.add_counts(&other);
        for (worst, found) in [
            (&mut self.lateness_median_ns, other.lateness_median_ns),
            (&mut self.lateness_p99_ns, other.lateness_p99_ns),
            (&mut self.lateness_p999_ns, other.lateness_p999_ns),
            (&mut self.lateness_max_ns, other.lateness_max_ns),
            (&mut self.handover_median_ns, other.handover_median_ns),
            (&mut self.handover_p99_ns, other.handover_p99_ns),
            (&mut self.handover_max_ns, other.handover_max_ns),
        ] {
            *worst = (*worst).max(found);
        }
        self.span_error = [self.span_error, other.span_error]
            .into_iter()
            .flatten()
            .reduce(|one, two| if two.abs() > one.abs() { two } else { one });
        self.submission.rings += other.submission.rings;
        self.certificate = self.certificate.and(other.certificate);
        self.targets.extend(other.targets);
        self
    }

    /// Adds what is counted, the CPU time included.
    fn add_counts(&mut self, other: &Fidelity) {
        for (sum, more) in [
            (&mut self.planned, other.planned),
            (&mut self.sent, other.sent),
            (&mut self.completed, other.completed),
            (&mut self.failed, other.failed),
            (&mut self.unfinished, other.unfinished),
            (&mut self.refused, other.refused),
            (&mut self.stopped, other.stopped),
            // Maxima at different times: the larger is a lower bound, the sum an upper one.
            (&mut self.max_in_flight, other.max_in_flight),
            (&mut self.held_back, other.held_back),
            (&mut self.starved, other.starved),
            (&mut self.queue_overflows, other.queue_overflows),
        ] {
            *sum += more;
        }
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
        self.cpu_seconds += other.cpu_seconds;
    }
}

/// Collects a [`Fidelity`] while requests are sent.
pub(crate) struct Recorder {
    lateness: Histogram<u64>,
    handover: Histogram<u64>,
    by_rate: ByRate,
    /// Intended time and submission of the first request and of the last.
    ends: Option<[(i64, i64); 2]>,
    /// Of the requests after the warm-up: number, first and last.
    measured: (u64, Option<[(i64, i64); 2]>),
    pub fidelity: Fidelity,
}

/// Largest recorded lateness: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

fn histogram() -> Result<Histogram<u64>, Error> {
    Ok(Histogram::new_with_bounds(1, LONGEST_NS, 3)?)
}

impl Recorder {
    pub fn new(
        targets: &[Target],
        epoch_monotonic_ns: i64,
        scheduling: Scheduling,
        submission: Submission,
    ) -> Result<Self, Error> {
        let report = |target: &Target| TargetReport {
            path: target.path.display().to_string(),
            kind: target.kind,
            files: target.files.len(),
            direct: target.direct(),
            note: String::new(),
            rounded: 0,
            handed_to_workers: 0,
        };
        Ok(Recorder {
            lateness: histogram()?,
            handover: histogram()?,
            by_rate: ByRate::new(submission.rings.max(1)),
            ends: None,
            measured: (0, None),
            fidelity: Fidelity {
                epoch_monotonic_ns,
                planned: 0,
                sent: 0,
                completed: 0,
                failed: 0,
                errors: BTreeMap::new(),
                unfinished: 0,
                refused: 0,
                stopped: 0,
                lateness_median_ns: 0,
                lateness_p99_ns: 0,
                lateness_p999_ns: 0,
                lateness_max_ns: 0,
                handover_median_ns: 0,
                handover_p99_ns: 0,
                handover_max_ns: 0,
                span_error: None,
                cpu_seconds: 0.0,
                max_in_flight: 0,
                held_back: 0,
                starved: 0,
                queue_overflows: 0,
                scheduling,
                submission,
                certificate: Certificate::default(),
                targets: targets.iter().map(report).collect(),
            },
        })
    }

    /// Records a submission; both times are relative to the epoch. Requests of the warm-up do not count.
    pub fn sent(&mut self, intended_ns: i64, submitted_ns: i64, warmup: bool) -> Result<(), Error> {
        let times = (intended_ns, submitted_ns);
        if !warmup {
            let late = u64::try_from(submitted_ns - intended_ns).unwrap_or(0);
            self.lateness.saturating_record(late);
            self.fidelity.lateness_max_ns = self.fidelity.lateness_max_ns.max(late);
            self.by_rate.add(intended_ns, late)?;
            self.measured.0 += 1;
            self.measured.1.get_or_insert([times; 2])[1] = times;
        }
        self.ends.get_or_insert([times; 2])[1] = times;
        self.fidelity.sent += 1;
        Ok(())
    }

    /// Records the time of a submission call.
    pub fn handed_over(&mut self, took_ns: i64) {
        let took = u64::try_from(took_ns).unwrap_or(0);
        self.handover.saturating_record(took);
        self.fidelity.handover_max_ns = self.fidelity.handover_max_ns.max(took);
    }

    /// Adds what another ring of the same replay recorded.
    pub fn merge(&mut self, other: Recorder) -> Result<(), Error> {
        // All have the same bounds.
        let _ = self.lateness.add(&other.lateness);
        let _ = self.handover.add(&other.handover);
        self.by_rate.merge(other.by_rate)?;
        self.ends = outermost(self.ends, other.ends);
        self.measured = (self.measured.0 + other.measured.0, outermost(self.measured.1, other.measured.1));
        let (ours, more) = (&mut self.fidelity, other.fidelity);
        ours.add_counts(&more);
        ours.lateness_max_ns = ours.lateness_max_ns.max(more.lateness_max_ns);
        ours.handover_max_ns = ours.handover_max_ns.max(more.handover_max_ns);
        if more.scheduling == Scheduling::Other {
            ours.scheduling = Scheduling::Other;
        }
        ours.submission.fixed_buffers &= more.submission.fixed_buffers;
        for (target, more) in ours.targets.iter_mut().zip(more.targets) {
            target.rounded += more.rounded;
            target.handed_to_workers += more.handed_to_workers;
        }
        Ok(())
    }

    /// The report, with its quantiles.
    pub fn finish(self) -> Result<Fidelity, Error> {
        let mut fidelity = self.fidelity;
        fidelity.lateness_median_ns = self.lateness.value_at_quantile(0.5);
        fidelity.lateness_p99_ns = self.lateness.value_at_quantile(0.99);
        fidelity.lateness_p999_ns = self.lateness.value_at_quantile(0.999);
        fidelity.handover_median_ns = self.handover.value_at_quantile(0.5);
        fidelity.handover_p99_ns = self.handover.value_at_quantile(0.99);
        if let Some([first, last]) = self.ends
            && last.0 > first.0
        {
            let span = (last.1 - first.1) as f64 / (last.0 - first.0) as f64;
            fidelity.span_error = Some(span - 1.0);
        }
        let (requests, ends) = self.measured;
        let rate = |time: fn(&(i64, i64)) -> i64| {
            let [first, last] = ends?;
            let span_ns = time(&last) - time(&first);
            (span_ns > 0).then(|| (requests - 1) as f64 * 1e9 / span_ns as f64)
        };
        fidelity.certificate = self.by_rate.finish(rate(|times| times.0), rate(|times| times.1))?;
        for target in &mut fidelity.targets {
            let mut notes = Vec::new();
            if !target.direct {
                notes.push("through the page cache: reads may not reach the device".to_owned());
            }
            if target.rounded > 0 {
                notes.push(format!("{} requests enlarged to the device's alignment", target.rounded));
            }
            if target.handed_to_workers > 0 {
                notes.push(format!(
                    "submission blocked: {} requests went to kernel worker threads",
                    target.handed_to_workers
                ));
            }
            target.note = notes.join("; ");
        }
        Ok(fidelity)
    }
}

/// The first of the firsts and the last of the lasts.
fn outermost(one: Option<[(i64, i64); 2]>, two: Option<[(i64, i64); 2]>) -> Option<[(i64, i64); 2]> {
    match (one, two) {
        (Some([first, last]), Some([other_first, other_last])) => {
            Some([first.min(other_first), last.max(other_last)])
        }
        (one, two) => one.or(two),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_and_span_are_those_of_the_definition() {
        let one = Submission { rings: 1, ..Submission::default() };
        let mut recorder = Recorder::new(&[], 5, Scheduling::Other, one).unwrap();
        for i in 0..100_i64 {
            recorder.sent(i * 1000, i * 1010 + 7, false).unwrap();
        }
        recorder.sent(100_000, 900_000_000, true).unwrap();
        recorder.sent(100_000, 101_000 + 7, false).unwrap();
        let fidelity = recorder.finish().unwrap();
        assert!((fidelity.certificate.asked_per_s.unwrap() - 1e6).abs() < 1e-3);
        assert!((fidelity.certificate.kept_per_s.unwrap() - 1e6 / 1.01).abs() < 1e-3);
        assert_eq!((fidelity.sent, fidelity.lateness_max_ns), (102, 100 * 10 + 7));
        assert!((fidelity.span_error.unwrap() - 0.01).abs() < 1e-12);
        assert!((497..=507).contains(&fidelity.lateness_median_ns), "{}", fidelity.lateness_median_ns);
        let empty = Recorder::new(&[], 0, Scheduling::Fifo, one).unwrap().finish().unwrap();
        assert_eq!((empty.span_error, empty.certificate.asked_per_s), (None, None));
    }

    #[test]
    fn two_rings_that_send_by_turns_are_one_replay() {
        let two = Submission { rings: 2, ..Submission::default() };
        let mut rings = [0, 1].map(|_| Recorder::new(&[], 0, Scheduling::Fifo, two).unwrap());
        for i in 0..2000_i64 {
            rings[i as usize % 2].sent(i * 1000, i * 1000 + 10 * (i % 2), false).unwrap();
        }
        let [mut merged, other] = rings;
        merged.merge(other).unwrap();
        let fidelity = merged.finish().unwrap();
        assert_eq!((fidelity.sent, fidelity.lateness_max_ns), (2000, 10));
        assert!((fidelity.span_error.unwrap() - 10.0 / 1_999_000.0).abs() < 1e-12);
        assert!((fidelity.certificate.asked_per_s.unwrap() - 1e6).abs() < 1e-3);
    }
}
