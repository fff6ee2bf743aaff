//! Calibration: statistics of a generated workload against its declared targets.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use weir_records::Request;

use crate::movie::movie;
use crate::spec::Workload;
use crate::statistics::{self, Figure};
use crate::stream::{Stream, StreamOptions};
use crate::target::{Statistic, Target, Targets};

/// Result of a calibration over several seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The workload.
    pub workload: String,
    /// Number of seeds; they are 1, 2, and so on.
    pub seeds: u64,
    /// Number of clients.
    pub clients: u32,
    /// Length of each stream, in seconds.
    pub duration_s: f64,
    /// One entry for each target, in their order.
    pub figures: Vec<Achieved>,
}

/// A target with its achieved value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Achieved {
    /// The target.
    pub target: Target,
    /// Unit of all numbers.
    pub unit: &'static str,
    /// Lowest and highest acceptable mean.
    pub band: [f64; 2],
    /// Mean over the seeds; absent if a seed gave no data for the statistic.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean by Student's t over the seeds; absent with one seed.
    pub interval: Option<[f64; 2]>,
    /// Lowest and highest of the seeds.
    pub range: Option<[f64; 2]>,
    /// Whether the mean is within the band.
    pub is_met: bool,
}

impl Calibration {
    /// Whether every target is met.
    pub fn is_met(&self) -> bool {
        self.figures.iter().all(|figure| figure.is_met)
    }
}

/// Statistics of a seed, in the order of the targets.
type Row = (u64, Vec<Option<f64>>);

/// Generates the workload with the seeds 1 to `seeds` and computes the statistics of its targets.
///
/// Paths of recordings are relative to `folder`. Seeds are spread over `threads`; the result does not
/// depend on their number.
///
/// # Errors
/// The workload declares no targets, is closed-loop, or its recording cannot be read.
pub fn calibrate(
    workload: &Workload,
    folder: &Path,
    seeds: u64,
    threads: usize,
) -> Result<Calibration, String> {
    let Some(targets) = workload.targets.as_ref().filter(|targets| !targets.figures.is_empty()) else {
        return Err(format!(
            "workload `{}` declares no targets: add `targets:` with `duration_s` and `figures`",
            workload.name
        ));
    };
    let seeds = seeds.max(1);
    let next = AtomicU64::new(1);
    let work = || -> Result<Vec<Row>, String> {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                return Ok(done);
            }
            done.push((seed, figures(workload, targets, folder, seed)?));
        }
    };
    let mut rows = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut rows = Vec::new();
        for worker in workers {
            rows.extend(worker.join().map_err(|_| "a worker thread ended early".to_owned())??);
        }
        Ok::<_, String>(rows)
    })?;
    rows.sort_by_key(|(seed, _)| *seed);
    let achieved = (0..)
        .zip(&targets.figures)
        .map(|(at, target): (usize, _)| {
            let values: Option<Vec<f64>> = rows.iter().map(|(_, figures)| figures[at]).collect();
            summary(target, values.as_deref())
        })
        .collect();
    Ok(Calibration {
        workload: workload.name.clone(),
        seeds,
        clients: targets.clients,
        duration_s: targets.duration_s,
        figures: achieved,
    })
}

/// All figures with one seed.
fn figures(
    workload: &Workload,
    targets: &Targets,
    folder: &Path,
    seed: u64,
) -> Result<Vec<Option<f64>>, String> {
    let options = StreamOptions {
        class: workload.name.clone(),
        clients: targets.clients,
        seed,
        duration_ns: (targets.duration_s * 1e9) as i64,
        warmup_ns: 0,
        folder: folder.to_owned(),
    };
    // One stream for its files, one to be consumed.
    let stream = Stream::new(workload, options.clone())?;
    let kind = |target: &Target| Statistic::find(&target.statistic);
    let mut of_requests: Vec<Option<Figure<'_>>> = targets
        .figures
        .iter()
        .map(|target| {
            kind(target)
                .filter(|kind| !kind.is_of_files() && !kind.is_of_frames())
                .map(|_| Figure::new(target, &stream, targets.clients, targets.duration_s))
        })
        .collect();
    if of_requests.iter().any(Option::is_some) {
        let mut last: Option<Request> = None;
        for request in Stream::new(workload, options)? {
            let opens = last.as_ref().is_none_or(|last| !continues(&request, last));
            of_requests.iter_mut().flatten().for_each(|figure| figure.see(&request, opens));
            last = Some(request);
        }
    }
    let asks_for_frames =
        targets.figures.iter().any(|target| kind(target).is_some_and(|kind| kind.is_of_frames()));
    let movie = if asks_for_frames { movie(workload, folder, seed, targets.duration_s)? } else { None };
    Ok(targets
        .figures
        .iter()
        .zip(of_requests)
        .map(|(target, figure)| match (figure, kind(target)?, &movie) {
            (Some(figure), ..) => figure.value(),
            (None, kind, Some(movie)) if kind.is_of_frames() => {
                statistics::of_frames(target, &movie.frames_bytes, movie.rate_hz)
            }
            (None, kind, _) if kind.is_of_files() => statistics::of_files(kind.name, &stream),
            _ => None,
        })
        .collect())
}

/// Whether a request is a further block of the access that the last one belongs to.
fn continues(request: &Request, last: &Request) -> bool {
    request.client == last.client
        && request.intended_ns == last.intended_ns
        && request.file == last.file
        && request.op == last.op
        && request.offset == last.offset + last.size_bytes
}

fn summary(target: &Target, values: Option<&[f64]>) -> Achieved {
    let band = target.band();
    let unit = Statistic::find(&target.statistic).map_or("", |statistic| statistic.unit);
    let Some(values) = values else {
        return Achieved {
            target: target.clone(),
            unit,
            band,
            mean: None,
            interval: None,
            range: None,
            is_met: false,
        };
    };
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let interval = (values.len() > 1).then(|| {
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
        let half = student_t(values.len() - 1) * (variance / n).sqrt();
        [mean - half, mean + half]
    });
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A mean of equal numbers may differ from them in the last place.
    let slack = 1e-12 * mean.abs();
    let is_met = band[0] - slack <= mean && mean <= band[1] + slack;
    Achieved {
        target: target.clone(),
        unit,
        band,
        mean: Some(mean),
        interval,
        range: Some([low, high]),
        is_met,
    }
}

/// The 97.5 % quantile of Student's t: exact to three digits for few degrees of freedom, then by the
/// Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5).
fn student_t(degrees: usize) -> f64 {
    const FEW: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    let n = degrees as f64;
    let z: f64 = 1.959_964;
    FEW.get(degrees.saturating_sub(1)).copied().unwrap_or_else(|| {
        z + (z.powi(3) + z) / (4.0 * n)
            + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
            + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * n.powi(3))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_agrees_with_the_tables() {
        for (degrees, expected) in
            [(1, 12.706), (5, 2.571), (6, 2.447), (10, 2.228), (19, 2.093), (100, 1.984)]
        {
            assert!((student_t(degrees) - expected).abs() < 2e-3, "{degrees}: {}", student_t(degrees));
        }
    }
}
