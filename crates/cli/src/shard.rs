//! Shards: which simulated runs belong to which of several machines.

use weir_study::Run;

use crate::exit::bad_input;

/// Whether a run is simulated by this part of `parts`, from 0: run i belongs to part i mod `parts`.
pub fn is_of_shard(run: &Run, part: u32, parts: u32) -> bool {
    run.testbed.is_virtual() && run.order % parts == part
}

/// The part and the number of parts of `I/N`, the part counted from 0.
///
/// # Errors
/// It is not `I/N` with I from 1 to N.
pub fn shard(text: Option<&str>) -> anyhow::Result<(u32, u32)> {
    let Some(text) = text else { return Ok((0, 1)) };
    let numbers =
        text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match numbers {
        Some((part, parts)) if (1u32..=parts).contains(&part) => Ok((part - 1, parts)),
        _ => Err(bad_input(format!("--shard {text}: write I/N with I from 1 to N, such as 1/3"))),
    }
}
