//! The Hurst parameter: how slowly burstiness dies out as windows grow. 0.5 is what independent arrivals have.
//!
//! Two methods, for neither is right alone. Both are straight lines through the scales at which windows hold at least one
//! arrival on average and there are at least 32 of them; below, single arrivals are all there is to see. A trend or a
//! daily rhythm looks like long-range dependence to both, less so to wavelets, and a week of trace has few long windows:
//! read them as a description of these scales, not as a proof.

use serde::Serialize;

use super::scales::AtScale;

/// Windows that a scale must have.
const FEWEST_WINDOWS: u64 = 32;
/// Scales that a line is drawn through.
const FEWEST_SCALES: usize = 4;

/// An estimate with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hurst {
    /// The method.
    pub method: &'static str,
    /// The parameter.
    pub estimate: f64,
    /// Coefficient of determination of the line.
    pub r_squared: f64,
    /// Shortest window.
    pub from_ns: i64,
    /// Longest window.
    pub to_ns: i64,
    /// Scales.
    pub scales: usize,
    /// When not to believe it.
    pub caveat: &'static str,
}

/// The estimates that these scales carry: none, one or two.
pub fn estimates(scales: &[AtScale]) -> Vec<Hurst> {
    let used = || scales.iter().filter(|scale| scale.windows >= FEWEST_WINDOWS && scale.mean >= 1.0);
    // The variance of the rate falls like window^(2H - 2).
    let rates = used().filter(|scale| scale.variance > 0.0).map(|scale| Point {
        window_ns: scale.window_ns,
        y: (scale.variance / (scale.mean * scale.mean)).log2(),
        weight: 1.0,
    });
    let variance = line(rates).map(|line| Hurst {
        method: "aggregated variance",
        estimate: 1.0 + line.slope / 2.0,
        r_squared: line.r_squared,
        from_ns: line.from_ns,
        to_ns: line.to_ns,
        scales: line.points,
        caveat: "biased towards 1 by trends and daily rhythms, below the truth by few windows",
    });
    // The energy of the coefficients grows like window^(2H - 1).
    let energies = used().filter_map(|scale| {
        let energy = scale.wavelet_energy.filter(|energy| *energy > 0.0)?;
        Some(Point { window_ns: scale.window_ns, y: energy.log2(), weight: scale.windows as f64 })
    });
    let wavelet = line(energies).map(|line| Hurst {
        method: "Haar wavelet energy (Abry and Veitch 1998)",
        estimate: (line.slope + 1.0) / 2.0,
        r_squared: line.r_squared,
        from_ns: line.from_ns,
        to_ns: line.to_ns,
        scales: line.points,
        caveat: "weighted by windows: mostly about the shorter scales; blind to a constant level only, not to trends",
    });
    variance.into_iter().chain(wavelet).collect()
}

struct Point {
    window_ns: i64,
    y: f64,
    weight: f64,
}

struct Line {
    slope: f64,
    r_squared: f64,
    from_ns: i64,
    to_ns: i64,
    points: usize,
}

/// Weighted least squares over log2 of the window.
fn line(points: impl Iterator<Item = Point>) -> Option<Line> {
    let points: Vec<Point> = points.collect();
    if points.len() < FEWEST_SCALES {
        return None;
    }
    let x = |point: &Point| (point.window_ns as f64).log2();
    let weight: f64 = points.iter().map(|point| point.weight).sum();
    let mean_x = points.iter().map(|point| point.weight * x(point)).sum::<f64>() / weight;
    let mean_y = points.iter().map(|point| point.weight * point.y).sum::<f64>() / weight;
    let sum = |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| point.weight * of(point)).sum::<f64>();
    let xx = sum(&|point| (x(point) - mean_x).powi(2));
    let xy = sum(&|point| (x(point) - mean_x) * (point.y - mean_y));
    let yy = sum(&|point| (point.y - mean_y).powi(2));
    Some(Line {
        slope: xy / xx,
        r_squared: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 },
        from_ns: points.first()?.window_ns,
        to_ns: points.last()?.window_ns,
        points: points.len(),
    })
}
