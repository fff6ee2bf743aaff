//! Validation of the specification of a server's day.

use crate::server::{Disk, KnownHour, ServerDay};
use crate::server_plan::{CELL_S, SECOND_BUSIEST, profile};
use crate::spec::{Access, Sizes, Workload};

const DAY_S: u32 = 86_400;
const MOST_DISKS: usize = 64;

/// Problems as fields and messages.
pub(crate) fn check(workload: &Workload, day: &ServerDay) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut problem = |field: &str, message: String| {
        let field = if let Some(outer) = field.strip_prefix('/') {
            outer.into()
        } else {
            format!("arrivals.server_day.{field}")
        };
        found.push((field, message));
    };
    let mut within = |field: &str, value: f64, low: f64, high: f64| {
        if !(low..=high).contains(&value) {
            problem(field, format!("is {value}; it must be from {low} to {high}"));
        }
    };
    within("cell_cov", day.cell_cov, 0.0, 100.0);
    within("cell_memory_s", day.cell_memory_s, 1.0, 1e6);
    within("reads.mean_length", day.reads.mean_length, 1.0, 1e4);
    within("reads.gap_ms", day.reads.gap_ms, 2.0, 1e4);
    within("reads.gap_std_ms", day.reads.gap_std_ms, 0.0, 1e4);
    within("writes.shape", day.writes.shape, 0.0, 10.0);
    within("writes.shortest", f64::from(day.writes.shortest), 1.0, 1e6);
    within("writes.longest", f64::from(day.writes.longest), f64::from(day.writes.shortest.max(1)), 1e6);
    within("writes.together", day.writes.together, 0.0, 1.0);
    within("writes.gap_ms", day.writes.gap_ms, 0.0, 1e4);
    within("sequential.read", day.sequential.read, 0.0, 1.0);
    within("sequential.write", day.sequential.write, 0.0, 1.0);
    within("hot.requests", day.hot.requests, 0.0, 1.0);
    within("hot.space", day.hot.space, 0.0, 1.0);
    for (at, hour) in day.hours.iter().enumerate() {
        within(&format!("hours.{at}"), *hour, 0.0, 1e9);
    }
    if let Some(spike) = day.spike {
        within("spike.weight", spike.weight, 0.0, 1e9);
        within("spike.to_s", f64::from(spike.to_s), f64::from(spike.from_s), f64::from(DAY_S));
    }
    if day.hours.len() != 24 || day.hours.iter().all(|hour| *hour <= 0.0) {
        let message = format!("has {} numbers; it must have 24, and one of them above 0", day.hours.len());
        problem("hours", message);
    }
    if !day.start_s.is_multiple_of(CELL_S) || day.start_s >= DAY_S {
        problem("start_s", format!("is {}; it must be a multiple of {CELL_S} below {DAY_S}", day.start_s));
    }
    if let Some(window) = day.window
        && (!window.from_s.is_multiple_of(CELL_S)
            || !window.to_s.is_multiple_of(CELL_S)
            || window.from_s >= window.to_s
            || window.to_s > DAY_S)
    {
        let message = format!(
            "is from {} to {}; both must be multiples of {CELL_S}, in order and at most {DAY_S}",
            window.from_s, window.to_s
        );
        problem("window", message);
    }
    for place in day.only.iter().flatten() {
        if usize::from(*place) >= day.disks.len() {
            problem("only", format!("names disk {place}, and there are {}, from 0", day.disks.len()));
        }
    }
    let asked = day.asked();
    if asked.len() != workload.files.count as usize || day.disks.len() > MOST_DISKS {
        let message = format!(
            "has {} disks that are asked, and files.count is {}: each file stands for a disk, at most {MOST_DISKS}",
            asked.len(),
            workload.files.count
        );
        problem("disks", message);
    }
    if asked.iter().all(|(_, disk)| disk.requests == 0) {
        problem("disks", "has no requests at all; at least one disk must have some".into());
    }
    for (at, disk) in day.disks.iter().enumerate() {
        if let Some(message) = disk_problem(day, disk) {
            problem(&format!("disks.{at}"), message);
        }
    }
    if !matches!(workload.sizes, Sizes::Drawn(_)) {
        problem("/sizes", "a server's requests are drawn: use drawn: {...}".into());
    }
    if workload.access != Access::Random {
        problem("/access", "a server's day says itself what is sequential: use random".into());
    }
    found
}

fn disk_problem(day: &ServerDay, disk: &Disk) -> Option<String> {
    let window_s = day.window.map_or(0, |window| window.length_s());
    let Disk { requests, peak_per_minute, longest_flush, window, .. } = *disk;
    if window_s == 0 && window.requests > 0 {
        return Some(
            "has requests in a window, but there is no window: remove them, or say when it is".into(),
        );
    }
    if u64::from(requests) < u64::from(peak_per_minute) + u64::from(window.requests) {
        return Some(format!(
            "has {requests} requests, fewer than its busiest minute ({peak_per_minute}) and its window ({}) together",
            window.requests
        ));
    }
    if longest_flush > peak_per_minute {
        return Some(format!(
            "has a flush of {longest_flush} in a busiest minute of {peak_per_minute}: it must be at most that"
        ));
    }
    if window.peak_per_s > window.requests || (window.peak_per_s == 0 && window.requests > 0) {
        return Some(format!(
            "has {} requests in its window and {} in the busiest second: it must be from 1 to as many",
            window.requests, window.peak_per_s
        ));
    }
    let minute = (f64::from(peak_per_minute) * SECOND_BUSIEST / 3.0).floor();
    if f64::from(window.peak_per_s) > minute {
        return Some(format!(
            "has {} requests in the busiest second of its window, too many for a busiest minute of {peak_per_minute} \
             outside it",
            window.peak_per_s
        ));
    }
    let in_cell = minute.min(f64::from(window.peak_per_s) * f64::from(CELL_S));
    if f64::from(window.requests) > in_cell * f64::from(window_s / CELL_S) {
        return Some(format!(
            "has {} requests in its window, more than minutes below the busiest ({peak_per_minute}) and seconds \
             of at most {} hold",
            window.requests, window.peak_per_s
        ));
    }
    // Minutes without weight have no requests, and the busiest minute is outside the window.
    let open = (0..DAY_S / 60).filter(|minute| {
        let mut cells = (0..60 / CELL_S).map(|cell| minute * 60 + cell * CELL_S);
        let outside = |at_s: u32| day.window.is_none_or(|w| !(w.from_s..w.to_s).contains(&at_s));
        cells.all(|at_s| outside(at_s) && profile(day, at_s) > 0.0)
    });
    let minutes = open.count();
    if peak_per_minute > 0 && minutes == 0 {
        return Some("has a busiest minute, but no minute outside the window has a weight".into());
    }
    if !disk.known_hours.is_empty() {
        return known_hours_problem(day, disk, minute);
    }
    let cells = 3.0 * minutes.saturating_sub(1) as f64;
    let rest = requests - peak_per_minute - window.requests;
    if f64::from(rest) > minute * cells {
        return Some(format!(
            "has {requests} requests, more than a day holds whose busiest minute has {peak_per_minute}"
        ));
    }
    None
}

/// Whether the known hours and the rest of the day hold their requests wherever the busiest minute falls, and however the
/// requests of the window are spread. `in_cell`: the most in a cell outside the busiest minute.
fn known_hours_problem(day: &ServerDay, disk: &Disk, in_cell: f64) -> Option<String> {
    let known = &disk.known_hours;
    if let Some(wrong) = known.iter().find(|known| known.hour > 23) {
        return Some(format!("knows hour {}: it must be from 0 to 23", wrong.hour));
    }
    if !known.is_sorted_by(|a, b| a.hour < b.hour) {
        return Some("has its known hours out of order, or one of them twice".into());
    }
    let in_window = |at_s: u32| day.window.is_some_and(|w| (w.from_s..w.to_s).contains(&at_s));
    let cells = |at_s: &dyn Fn(u32) -> bool| {
        (0..DAY_S / CELL_S)
            .map(|cell| cell * CELL_S)
            .filter(|at| at_s(*at) && !in_window(*at) && profile(day, *at) > 0.0)
            .count() as f64
    };
    let elsewhere = u64::from(disk.peak_per_minute) + u64::from(disk.window.requests);
    for KnownHour { hour, requests } in known {
        let open = cells(&|at_s| at_s / 3600 == u32::from(*hour));
        if u64::from(*requests) < elsewhere || f64::from(*requests) > in_cell * open {
            return Some(format!(
                "has {requests} requests in hour {hour}; with its window and a busiest minute of {} it must be from {elsewhere} \
                 to {}",
                disk.peak_per_minute,
                in_cell * open
            ));
        }
    }
    let all: u64 = known.iter().map(|known| u64::from(known.requests)).sum();
    let open = cells(&|at_s| known.iter().all(|known| at_s / 3600 != u32::from(known.hour)));
    let rest = u64::from(disk.requests).checked_sub(all);
    let is_possible = rest.is_some_and(|rest| rest >= elsewhere && rest as f64 <= in_cell * open);
    (!is_possible).then(|| {
        format!(
            "has {} requests, {all} of them in known hours; with its window and a busiest minute of {} the other hours must \
             have from {elsewhere} to {}",
            disk.requests,
            disk.peak_per_minute,
            in_cell * open
        )
    })
}
