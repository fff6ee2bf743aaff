//! Hurst parameter: decay of burstiness as windows grow. Independent arrivals have 0.5.
//!
//! Two methods, since neither suffices alone. Both fit straight lines through scales with at least one arrival per window
//! on average and at least 32 windows; shorter windows show single arrivals only. They begin at the onset of scaling: the
//! finest scale above which the energies of the Haar wavelet fit a line (chi-squared by degree of freedom of at most 2;
//! if there is none, where it is smallest), in the way of Veitch, Abry and Taqqu (2003). A trend or a daily rhythm looks
//! like long-range dependence to both, and a week of trace has few long windows: read them as a description of these
//! scales, not as a proof.

use serde::Serialize;

use super::scales::AtScale;

/// Windows that a scale must have.
const FEWEST_WINDOWS: u64 = 32;
/// Scales that a line is drawn through.
const FEWEST_SCALES: usize = 4;
/// Largest accepted chi-squared per degree of freedom of a line.
const MISFIT: f64 = 2.0;

/// An estimate with its scales and goodness of fit.
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
    /// Caveat of the method.
    pub caveat: &'static str,
}

/// The estimates that these scales carry: none, one or two.
pub fn estimates(scales: &[AtScale]) -> Vec<Hurst> {
    let used = || scales.iter().filter(|scale| scale.windows >= FEWEST_WINDOWS && scale.mean >= 1.0);
    // The energy of the coefficients grows like window^(2H - 1); log2 of a mean of n squares varies by 2 / (n ln^2 2).
    let energies: Vec<Point> = used()
        .filter_map(|scale| {
            let energy = scale.wavelet_energy.filter(|energy| *energy > 0.0)?;
            let weight = scale.windows as f64 * std::f64::consts::LN_2.powi(2) / 2.0;
            Some(Point { window_ns: scale.window_ns, y: energy.log2(), weight })
        })
        .collect();
    let Some(wavelet) = from_onset(&energies) else { return Vec::new() };
    // The variance of the rate falls like window^(2H - 2).
    let rates: Vec<Point> = used()
        .filter(|scale| scale.variance > 0.0 && scale.window_ns >= wavelet.from_ns)
        .map(|scale| Point {
            window_ns: scale.window_ns,
            y: (scale.variance / (scale.mean * scale.mean)).log2(),
            weight: 1.0,
        })
        .collect();
    let variance = line(&rates).map(|line| Hurst {
        method: "aggregated variance",
        estimate: 1.0 + line.slope / 2.0,
        r_squared: line.r_squared,
        from_ns: line.from_ns,
        to_ns: line.to_ns,
        scales: line.points,
        caveat: "biased towards 1 by trends and daily rhythms, below the truth by few windows",
    });
    let wavelet = Hurst {
        method: "Haar wavelet energy (Abry and Veitch 1998)",
        estimate: (wavelet.slope + 1.0) / 2.0,
        r_squared: wavelet.r_squared,
        from_ns: wavelet.from_ns,
        to_ns: wavelet.to_ns,
        scales: wavelet.points,
        caveat: "weighted by windows: mostly about the shorter scales; blind to a constant level only, not to trends",
    };
    variance.into_iter().chain([wavelet]).collect()
}

/// The line from the onset of scaling on.
fn from_onset(points: &[Point]) -> Option<Line> {
    let lines: Vec<Line> = (0..points.len()).map_while(|from| line(&points[from..])).collect();
    let onset = lines
        .iter()
        .position(|line| line.misfit <= MISFIT)
        .or_else(|| (0..lines.len()).min_by(|a, b| lines[*a].misfit.total_cmp(&lines[*b].misfit)))?;
    lines.into_iter().nth(onset)
}

struct Point {
    window_ns: i64,
    y: f64,
    weight: f64,
}

struct Line {
    slope: f64,
    r_squared: f64,
    /// Chi-squared by degree of freedom, where weights are inverse variances.
    misfit: f64,
    from_ns: i64,
    to_ns: i64,
    points: usize,
}

/// Weighted least squares over log2 of the window.
fn line(points: &[Point]) -> Option<Line> {
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
        misfit: (yy - xy * xy / xx).max(0.0) / (points.len() - 2) as f64,
        from_ns: points.first()?.window_ns,
        to_ns: points.last()?.window_ns,
        points: points.len(),
    })
}
