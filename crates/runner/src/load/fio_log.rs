//! Rows from fio's per-request logs.
//!
//! fio writes two logs: the issue log (`write_iolog`, version 3) has each request's address and its time of issue in us, from
//! an unknown origin; the latency log has each completion on a known clock, in whole ms, and the latency in ns. Each completed
//! request bounds the origin to an interval of 1 ms; many together bound it to microseconds.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_records::{Op, Request};
use weir_study::Run;
use weir_workload::Deadline;

use crate::Error;
use crate::files::placement::Placement;

/// The logs of one fio job.
pub(crate) struct JobLogs {
    pub(crate) issues: PathBuf,
    pub(crate) responses: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Issue {
    at_us: i64,
    op: Op,
    offset: u64,
    size_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Response {
    completed_ms: i64,
    latency_ns: i64,
    op: Op,
    offset: u64,
}

/// Rows of one job, with times relative to the run's epoch. A request without a response has no completion.
///
/// # Errors
/// A log is absent or damaged, or a response has no request.
pub(crate) fn rows(
    logs: &JobLogs,
    place: &Placement,
    client: u32,
    run: &Run,
    epoch_monotonic_ns: i64,
) -> Result<Vec<Request>, Error> {
    let issues = read(&logs.issues, parse_issue)?;
    let responses = read(&logs.responses, parse_response)?;
    let pairs = pair(&issues, &responses)
        .map_err(|text| Error::Failed(format!("{}: {text}", logs.responses.display())))?;
    let base_ns = base_ns(&pairs).unwrap_or(epoch_monotonic_ns);
    let class: Arc<str> = place.class.name.as_str().into();
    let device: Arc<str> = place.class.device.as_str().into();
    let deadline_after_ns = match place.recipe.deadline {
        Some(Deadline::After { ms }) => Some((ms * 1e6) as i64),
        _ => None,
    };
    let row = |(issue, response): &(Issue, Option<Response>)| {
        // In a closed loop the intended time is the time of issue. The log truncates half a microsecond on average.
        let issued_ns = base_ns + issue.at_us * 1000 + 500 - epoch_monotonic_ns;
        Request {
            request: 0,
            class: Arc::clone(&class),
            client,
            device: Some(Arc::clone(&device)),
            file: (!place.is_raw()).then_some(0),
            op: issue.op,
            offset: issue.offset,
            size_bytes: issue.size_bytes,
            intended_ns: issued_ns,
            submitted_ns: Some(issued_ns),
            completed_ns: response.map(|response| issued_ns + response.latency_ns),
            deadline_ns: deadline_after_ns.map(|after| issued_ns + after),
            served_ns: None,
            status: 0,
            warmup: issued_ns < run.warmup_ns(),
        }
    };
    Ok(pairs.iter().map(row).collect())
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Option<Option<T>>) -> Result<Vec<T>, Error> {
    let file = File::open(path).map_err(Error::io("fio wrote no log", path))?;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(Error::io("cannot read", path))?;
        match parse(&line) {
            Some(Some(item)) => found.push(item),
            Some(None) => {}
            None => {
                return Err(Error::Failed(format!(
                    "{}:{number}: not a line of fio's log (found {line:?})",
                    path.display()
                )));
            }
        }
    }
    Ok(found)
}

/// Largest time in a log, in ns: the sum of three does not overflow.
const LONGEST_NS: i64 = i64::MAX / 4;

/// A time in ms or us, converted to ns.
fn time(text: &str) -> Option<i64> {
    text.parse().ok().filter(|time| (0..=LONGEST_NS / 1_000_000).contains(time))
}

/// `373 f read 4046848 4096`; lines about the log and the file are skipped (`Some(None)`).
fn parse_issue(line: &str) -> Option<Option<Issue>> {
    if line.starts_with("fio version 3") {
        return Some(None);
    }
    // The file name may contain blanks; later fields do not.
    let mut words = line.rsplitn(4, ' ');
    let last = words.next()?;
    if ["add", "open", "close"].contains(&last) {
        return Some(None);
    }
    let (size_bytes, offset) = (last.parse().ok()?, words.next()?.parse().ok()?);
    let op = match words.next()? {
        "read" => Op::Read,
        "write" => Op::Write,
        "sync" | "datasync" | "trim" | "wait" => return Some(None),
        _ => return None,
    };
    let at_us = time(words.next()?.split(' ').next()?)?;
    Some(Some(Issue { at_us, op, offset, size_bytes }))
}

/// `214, 170668, 0, 4096, 49676288, 0`: ms, ns, direction, bytes, offset, priority.
fn parse_response(line: &str) -> Option<Option<Response>> {
    let mut fields = line.split(',').map(str::trim);
    let completed_ms = time(fields.next()?)?;
    let latency_ns = fields.next()?.parse().ok().filter(|ns| (0..=LONGEST_NS).contains(ns))?;
    let op = match fields.next()? {
        "0" => Op::Read,
        "1" => Op::Write,
        _ => return Some(None),
    };
    let offset = fields.nth(1)?.parse().ok()?;
    Some(Some(Response { completed_ms, latency_ns, op, offset }))
}

/// Each request with its response. Requests to one address are matched in order of issue, as the logs cannot distinguish them.
fn pair(issues: &[Issue], responses: &[Response]) -> Result<Vec<(Issue, Option<Response>)>, String> {
    let mut waiting: HashMap<(Op, u64), VecDeque<usize>> = HashMap::new();
    for (index, issue) in issues.iter().enumerate() {
        waiting.entry((issue.op, issue.offset)).or_default().push_back(index);
    }
    let mut pairs: Vec<(Issue, Option<Response>)> = issues.iter().map(|issue| (*issue, None)).collect();
    for response in responses {
        let index = waiting
            .get_mut(&(response.op, response.offset))
            .and_then(VecDeque::pop_front)
            .ok_or_else(|| format!("a response at offset {} has no request", response.offset))?;
        pairs[index].1 = Some(*response);
    }
    Ok(pairs)
}

/// Origin of issue times on `CLOCK_MONOTONIC`, in ns; `None` without a response.
///
/// A request issued at `u` with latency `l` and completed in ms `m` gives `m <= origin + u + l < m + 1`. The origin is the
/// middle of the interval that all requests allow; where they disagree (a log line was written late), the median.
fn base_ns(pairs: &[(Issue, Option<Response>)]) -> Option<i64> {
    let mut lows: Vec<i64> = pairs
        .iter()
        .filter_map(|(issue, response)| {
            let response = (*response)?;
            Some(response.completed_ms * 1_000_000 - issue.at_us * 1000 - response.latency_ns)
        })
        .collect();
    lows.sort_unstable();
    let (&least, &most) = (lows.first()?, lows.last()?);
    let high = least + 1_000_000;
    if most < high { Some(most + (high - most) / 2) } else { Some(lows[lows.len() / 2] + 500_000) }
}

/// Reads and matches the text of both logs.
pub(crate) fn fuzzing(issues: &str, responses: &str) {
    let issues: Vec<Issue> = issues.lines().filter_map(parse_issue).flatten().collect();
    let responses: Vec<Response> = responses.lines().filter_map(parse_response).flatten().collect();
    if let Ok(pairs) = pair(&issues, &responses) {
        base_ns(&pairs);
    }
}

/// Percentile of sorted values: the smallest one that this share does not exceed; `None` without values.
pub(crate) fn percentile(sorted: &[i64], per_cent: usize) -> Option<i64> {
    sorted.get((sorted.len() * per_cent).div_ceil(100).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_both_logs_are_read() {
        let issue = Issue { at_us: 373, op: Op::Read, offset: 4_046_848, size_bytes: 4096 };
        assert_eq!(parse_issue("373 /mnt/a b read 4046848 4096"), Some(Some(issue)));
        assert_eq!(parse_issue("28 f add"), Some(None));
        assert_eq!(parse_issue("fio version 3 iolog"), Some(None));
        assert_eq!(parse_issue("373 f read x 4096"), None);
        let response = Response { completed_ms: 678, latency_ns: 101_629, op: Op::Write, offset: 13_348_864 };
        assert_eq!(parse_response("678, 101629, 1, 4096, 13348864, 0"), Some(Some(response)));
        assert_eq!(parse_response("678, 101629"), None);
        // Their sums were not numbers any more.
        assert_eq!(parse_response("9223372036854775807, 1, 0, 4096, 0, 0"), None);
        assert_eq!(parse_response("1, 9223372036854775807, 0, 4096, 0, 0"), None);
        assert_eq!(parse_issue("9223372036854775807 f read 0 4096"), None);
    }

    #[test]
    fn a_response_without_a_request_is_an_error_and_the_reverse_a_null() {
        let issue = Issue { at_us: 1, op: Op::Read, offset: 0, size_bytes: 4096 };
        let response = Response { completed_ms: 1, latency_ns: 1, op: Op::Read, offset: 4096 };
        assert!(pair(&[issue], &[response]).is_err());
        assert_eq!(pair(&[issue], &[]).unwrap(), [(issue, None)]);
    }

    proptest! {
        /// However the requests fall, the base is found to within what they leave open, and never worse than 0.5 ms.
        #[test]
        fn the_base_is_found(
            base in 0i64..1_000_000_000_000,
            requests in proptest::collection::vec((0i64..10_000_000, 1000i64..50_000_000), 1..300),
        ) {
            let pairs: Vec<_> = requests
                .iter()
                .map(|&(at_us, latency_ns)| {
                    let completed_ms = (base + at_us * 1000 + latency_ns) / 1_000_000;
                    let issue = Issue { at_us, op: Op::Read, offset: 0, size_bytes: 4096 };
                    (issue, Some(Response { completed_ms, latency_ns, op: Op::Read, offset: 0 }))
                })
                .collect();
            let found = base_ns(&pairs).unwrap();
            prop_assert!((found - base).abs() <= 500_000);
            if pairs.len() > 100 {
                prop_assert!((found - base).abs() <= 60_000, "off by {} ns", found - base);
            }
        }
    }
}
