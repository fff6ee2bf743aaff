//! Rows from fio's per-request logs.
//!
//! fio writes two logs: the issue log (`write_iolog`, version 3) has each request's address and its time of issue in us, from
//! an unknown origin; the latency log has each completion on a known clock, in whole ms, and the latency in ns. Each completed
//! request bounds the origin to an interval of 1 ms; many together bound it to microseconds.
//!
//! Logs are read several times, a line at a time: memory does not depend on their length.

use std::collections::hash_map::Entry;
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

/// Calls `each` with the rows of one job, with times relative to the run's epoch, in any order. A request without a response has no
/// completion. Numbers of rows are in the order of clients, then of issue.
///
/// # Errors
/// A log is absent or damaged, or a response has no request.
pub(crate) fn rows(
    logs: &JobLogs,
    place: &Placement,
    client: u32,
    run: &Run,
    epoch_monotonic_ns: i64,
    mut each: impl FnMut(Request),
) -> Result<(), Error> {
    let base_ns = base_ns(|low| {
        pairs(logs, |(_, issue), response| {
            response.into_iter().for_each(|response| low(low_ns(&issue, &response)))
        })
    })?;
    let base_ns = base_ns.unwrap_or(epoch_monotonic_ns);
    let class: Arc<str> = place.class.name.as_str().into();
    let device: Arc<str> = place.class.device.as_str().into();
    let deadline_after_ns = match place.recipe.deadline {
        Some(Deadline::After { ms }) => Some((ms * 1e6) as i64),
        _ => None,
    };
    let row = |(number, issue): (u64, Issue), response: Option<Response>| {
        // In a closed loop the intended time is the time of issue. The log truncates half a microsecond on average.
        let issued_ns = base_ns + issue.at_us * 1000 + 500 - epoch_monotonic_ns;
        Request {
            request: u64::from(client) << ISSUE_BITS | number,
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
    pairs(logs, |issue, response| each(row(issue, response)))
}

/// Bits of the number of an issue in that of its row.
const ISSUE_BITS: u32 = 40;

/// The items of a log, in order.
fn read<T>(
    path: &Path,
    parse: impl Fn(&str) -> Option<Option<T>>,
) -> Result<impl Iterator<Item = Result<T, Error>>, Error> {
    let file = File::open(path).map_err(Error::io("fio wrote no log", path))?;
    Ok((1..).zip(BufReader::new(file).lines()).filter_map(move |(number, line)| {
        let line = match line.map_err(Error::io("cannot read", path)) {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let unknown = || {
            let text = format!("{}:{number}: not a line of fio's log (found {line:?})", path.display());
            Error::Failed(text)
        };
        parse(&line).ok_or_else(unknown).transpose()
    }))
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

/// Calls `each` with every request of two logs and its response.
fn pairs(logs: &JobLogs, each: impl FnMut((u64, Issue), Option<Response>)) -> Result<(), Error> {
    let issues = read(&logs.issues, parse_issue)?;
    let responses = read(&logs.responses, parse_response)?;
    pair(issues, responses, |text| Error::Failed(format!("{}: {text}", logs.responses.display())), each)
}

/// Calls `each` with every request, its number, and its response. Requests to one address are matched in order of issue, as the
/// logs cannot distinguish them. Requests without a response so far are in memory.
fn pair<E>(
    issues: impl Iterator<Item = Result<Issue, E>>,
    responses: impl Iterator<Item = Result<Response, E>>,
    failed: impl Fn(String) -> E,
    mut each: impl FnMut((u64, Issue), Option<Response>),
) -> Result<(), E> {
    let mut issues = (0..).zip(issues);
    let mut waiting: HashMap<(Op, u64), VecDeque<(u64, Issue)>> = HashMap::new();
    for response in responses {
        let response = response?;
        let address = (response.op, response.offset);
        let issue = loop {
            if let Entry::Occupied(mut queue) = waiting.entry(address) {
                let first = queue.get_mut().pop_front();
                if queue.get().is_empty() {
                    queue.remove();
                }
                if let Some(first) = first {
                    break first;
                }
            }
            let Some((number, issue)) = issues.next() else {
                return Err(failed(format!("a response at offset {} has no request", response.offset)));
            };
            let issue = issue?;
            waiting.entry((issue.op, issue.offset)).or_default().push_back((number, issue));
        };
        each(issue, Some(response));
    }
    waiting.into_values().flatten().for_each(|issue| each(issue, None));
    for (number, issue) in issues {
        each((number, issue?), None);
    }
    Ok(())
}

/// The least origin of issue times that a request allows.
fn low_ns(issue: &Issue, response: &Response) -> i64 {
    response.completed_ms * 1_000_000 - issue.at_us * 1000 - response.latency_ns
}

/// Origin of issue times on `CLOCK_MONOTONIC`, in ns; `None` without a response. Each call of `pass` calls its argument with
/// [`low_ns`] of every request.
///
/// A request issued at `u` with latency `l` and completed in ms `m` gives `m <= origin + u + l < m + 1`. The origin is the
/// middle of the interval that all requests allow; where they disagree (a log line was written late), the median.
fn base_ns<E>(mut pass: impl FnMut(&mut dyn FnMut(i64)) -> Result<(), E>) -> Result<Option<i64>, E> {
    let (mut count, mut ends) = (0, None);
    pass(&mut |low| {
        count += 1;
        let (least, most) = ends.unwrap_or((low, low));
        ends = Some((low.min(least), low.max(most)));
    })?;
    let Some((least, most)) = ends else { return Ok(None) };
    let high = least + 1_000_000;
    if most < high {
        return Ok(Some(most + (high - most) / 2));
    }
    Ok(Some(of_rank(count / 2, (least, most), pass)? + 500_000))
}

/// Intervals that values are counted in.
const INTERVALS: u64 = 1 << 16;

/// The value of this rank, from 0, of values from `least` to `most`: the interval that has it is divided until it has one value.
fn of_rank<E>(
    mut rank: u64,
    (mut least, mut most): (i64, i64),
    mut pass: impl FnMut(&mut dyn FnMut(i64)) -> Result<(), E>,
) -> Result<i64, E> {
    loop {
        let width = most.abs_diff(least) / INTERVALS + 1;
        let mut counts = vec![0; INTERVALS as usize];
        pass(&mut |value| {
            if (least..=most).contains(&value) {
                counts[(value.abs_diff(least) / width) as usize] += 1;
            }
        })?;
        for count in counts {
            if rank < count {
                break;
            }
            rank -= count;
            least = least.saturating_add_unsigned(width);
        }
        if width == 1 {
            return Ok(least);
        }
        most = least.saturating_add_unsigned(width - 1);
    }
}

/// Reads and matches the text of both logs.
pub(crate) fn fuzzing(issues: &str, responses: &str) {
    let _ = base_ns(|low| {
        let issues = issues.lines().filter_map(parse_issue).flatten().map(Ok);
        let responses = responses.lines().filter_map(parse_response).flatten().map(Ok);
        let each = |(_, issue): (u64, Issue), response: Option<Response>| {
            response.into_iter().for_each(|response| low(low_ns(&issue, &response)));
        };
        pair(issues, responses, |text| text, each)
    });
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
        assert!(paired(&[issue], &[response]).is_err());
        assert_eq!(paired(&[issue], &[]).unwrap(), [(0, issue, None)]);
    }

    /// Each request with its number and its response, in order of issue.
    fn paired(
        issues: &[Issue],
        responses: &[Response],
    ) -> Result<Vec<(u64, Issue, Option<Response>)>, String> {
        let mut pairs = Vec::new();
        let each = |(number, issue), response| pairs.push((number, issue, response));
        pair(issues.iter().copied().map(Ok), responses.iter().copied().map(Ok), |text| text, each)?;
        pairs.sort_by_key(|(number, ..)| *number);
        Ok(pairs)
    }

    #[test]
    fn requests_to_one_address_are_matched_in_order_of_issue() {
        let issue = |at_us, offset| Issue { at_us, op: Op::Read, offset, size_bytes: 4096 };
        let response = |latency_ns, offset| Response { completed_ms: 1, latency_ns, op: Op::Read, offset };
        let issues = [issue(1, 0), issue(1, 8), issue(2, 0), issue(3, 16), issue(4, 0)];
        let responses = [response(1, 8), response(2, 0), response(3, 0), response(4, 16)];
        let found = paired(&issues, &responses).unwrap();
        let latencies = found.iter().map(|(.., response)| response.map(|response| response.latency_ns));
        assert!(latencies.eq([Some(2), Some(1), Some(3), Some(4), None]), "{found:?}");
        assert!(found.iter().map(|(number, ..)| *number).eq(0..5));
    }

    proptest! {
        /// However the requests fall, the base is found to within what they leave open, and never worse than 0.5 ms.
        #[test]
        fn the_base_is_found(
            base in 0i64..1_000_000_000_000,
            requests in proptest::collection::vec((0i64..10_000_000, 1000i64..50_000_000), 1..300),
        ) {
            let low = |&(at_us, latency_ns): &(i64, i64)| {
                let completed_ms = (base + at_us * 1000 + latency_ns) / 1_000_000;
                let issue = Issue { at_us, op: Op::Read, offset: 0, size_bytes: 4096 };
                low_ns(&issue, &Response { completed_ms, latency_ns, op: Op::Read, offset: 0 })
            };
            let pass = |each: &mut dyn FnMut(i64)| -> Result<(), String> {
                requests.iter().map(low).for_each(each);
                Ok(())
            };
            let found = base_ns(pass).unwrap().unwrap();
            prop_assert!((found - base).abs() <= 500_000);
            if requests.len() > 100 {
                prop_assert!((found - base).abs() <= 60_000, "off by {} ns", found - base);
            }
        }

        #[test]
        fn a_value_is_found_by_its_rank(
            mut values in proptest::collection::vec(prop_oneof![0i64..9, -1i64 << 60..1 << 60], 1..200),
            at in any::<proptest::sample::Index>(),
        ) {
            let rank = at.index(values.len());
            let ends = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
            let pass = |each: &mut dyn FnMut(i64)| -> Result<(), String> {
                values.iter().copied().for_each(each);
                Ok(())
            };
            let found = of_rank(rank as u64, ends, pass).unwrap();
            values.sort_unstable();
            prop_assert_eq!(found, values[rank]);
        }
    }
}
