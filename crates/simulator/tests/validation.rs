//! The fitted drives against their measurements: the table of `docs/reference/disks.md`. Needs the traces: `WEIR_TRACES`
//! names the folder that holds `disksim/`.

use std::path::Path;

use weir_simulator::profile::{self, Profile};

use crate::{demerit, trace};

#[test]
fn the_fitted_drives_are_as_near_to_the_measured_ones_as_the_documentation_says() {
    let Some(folder) = std::env::var_os("WEIR_TRACES") else {
        return eprintln!("skipped: WEIR_TRACES is not set");
    };
    // Demerit of the half that was not fitted to, in percent of the mean, and the median distance of single times in ms.
    for (name, profile_name, most_percent, most_apart_ms) in [
        ("barracuda", "seagate-barracuda-validated", 3.2, 0.27),
        ("hp_c2247a", "hp-c2247a", 1.2, 0.09),
        ("hp_c3323a", "hp-c3323a", 1.5, 2.2),
        ("dec_rz26", "dec-rz26", 2.2, 0.51),
    ] {
        let file = Path::new(&folder).join(format!("disksim/{name}.trace"));
        if !file.is_file() {
            eprintln!("{name} skipped: there is no {}", file.display());
            continue;
        }
        let requests = trace::read(&file).unwrap();
        assert!(requests.iter().any(|request| request.follows), "{name} has no sequential requests");
        let Profile::Disk(disk) = profile::load(profile_name).unwrap() else { panic!("{profile_name}") };
        let (_, percent, apart_ms) = trace::compare(&disk, &requests[requests.len() / 2..]).unwrap();
        assert!(percent < most_percent && apart_ms < most_apart_ms, "{name}: {percent} %, {apart_ms} ms");
    }
}

#[test]
fn a_demerit_by_hand() {
    // Sorted 1, 2, 4 and 1, 3, 4 ms: one of three is 1 ms off; the mean is 7/3 ms.
    let ms = |times: [u64; 3]| times.map(|ms| ms * 1_000_000);
    let (rms_ms, percent) = demerit::demerit_ms(&ms([4, 1, 2]), &ms([3, 4, 1]));
    assert!((rms_ms - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    assert!((percent - rms_ms / (7.0 / 3.0) * 100.0).abs() < 1e-9);
}
