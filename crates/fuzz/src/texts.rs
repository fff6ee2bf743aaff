//! Fuzz targets of short texts: files of /proc and /sys, options, and fields with their own syntax.

use weir_scheduler::Settings;
use weir_study::{ControlGroup, IoCost, Scheduler};

/// One of these texts. The first byte selects it.
pub(crate) fn texts(data: &[u8]) {
    let Some((kind, rest)) = crate::choice(data, 12) else { return };
    let text = String::from_utf8_lossy(rest);
    match kind {
        0 => weir_collectors::fuzzing::proc(&text),
        1 => drop(weir_host::mounts::parse(rest)),
        2 => weir_host::steal::Ticks::fuzzing(&text),
        3 => weir_blockserver::fuzzing::policy(&text),
        4 => weir_web_site::fuzzing::address(&text),
        5 => drop(weir_study::size_bytes(&text)),
        6 => drop(Scheduler::try_from(text.into_owned())),
        7 => drop(ControlGroup::try_from(text.into_owned())),
        8 => drop(IoCost::try_from(text.into_owned())),
        9 => drop(weir_vocabulary::IoPriority::try_from(text.into_owned())),
        10 => drop(text.parse::<weir_trace::filter::Ratio>()),
        _ => policy(&text),
    }
}

/// The settings of a scheduler, from which the scheduler is built.
fn policy(text: &str) {
    let Ok(scheduler) = Scheduler::try_from(text.to_owned()) else { return };
    let class = weir_scheduler::Class {
        name: "text".to_owned(),
        kind: weir_scheduler::TrafficKind::Interactive,
        weight: 1.0,
        contract: None,
    };
    let _ = weir_scheduler::build(&scheduler.name, &[class], &Settings(scheduler.tunables));
}
