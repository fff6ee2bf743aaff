//! Completions that are polled for: which targets permit it, and what a read costs.

use std::io;

use weir_host::clock::monotonic_ns;
use weir_records::Op;

use crate::buffer::Buffer;
use crate::ring::Ring;
use crate::targets::Transfer;
use crate::{Error, Targets};

/// Length of a probing read, and alignment of its data.
const READ_BYTES: u32 = 4096;
/// Number of reads by which the cost is measured.
const PROBES: usize = 64;
/// Limit on one probing read.
const LIMIT_NS: i64 = 5_000_000_000;

/// Checks that completions of all targets can be polled for, by one read of each.
///
/// # Errors
/// A target is read through the page cache, is empty, or its device has no polling queues.
pub fn check_polling(targets: &Targets) -> Result<(), Error> {
    let mut ring = Ring::new(false, true)?;
    for target in &targets.targets {
        let refused = |reason: String| Error::NoPolling { path: target.path.clone(), reason };
        if !target.direct() {
            return Err(refused("its transfers are not direct".to_owned()));
        }
        let Some(file) = target.files.first().filter(|file| file.size_bytes >= u64::from(READ_BYTES)) else {
            return Err(refused(format!("it is shorter than {READ_BYTES} bytes")));
        };
        let result = read(&mut ring, file.fd())?.1;
        if result < 0 {
            return Err(refused(io::Error::from_raw_os_error(-result).to_string()));
        }
    }
    Ok(())
}

/// Median time of a read of 4 KiB from the first target.
pub(crate) fn read_ns(targets: &Targets, poll_completions: bool) -> Result<u64, Error> {
    let Some(file) = targets.targets.first().and_then(|target| target.files.first()) else { return Ok(0) };
    let mut ring = Ring::new(false, poll_completions)?;
    let mut took_ns = Vec::with_capacity(PROBES);
    for _ in 0..PROBES {
        took_ns.push(u64::try_from(read(&mut ring, file.fd())?.0).unwrap_or(0));
    }
    took_ns.sort_unstable();
    Ok(took_ns[PROBES / 2])
}

/// Reads the first bytes of a file; returns time and result.
fn read(ring: &mut Ring, fd: libc::c_int) -> Result<(i64, i32), Error> {
    let transfer = Transfer {
        target: 0,
        fd,
        file: 0,
        op: Op::Read,
        offset: 0,
        length: READ_BYTES,
        range_bytes: 0,
        to_device: false,
        expected: READ_BYTES,
        skip: 0,
        priority: 0,
        rounded: false,
    };
    // Kept forever if the device does not answer, since it may still write to it.
    let mut data = std::mem::ManuallyDrop::new(Buffer::new(READ_BYTES as usize));
    let begin = monotonic_ns();
    // SAFETY: the data live until the completion was seen, or forever; the caller keeps the file open.
    unsafe { ring.push(&transfer, data.as_mut_ptr(), false, 0, false)? };
    while !ring.submit()? {}
    let mut completions = Vec::new();
    while completions.is_empty() {
        if monotonic_ns() - begin > LIMIT_NS {
            return Ok((LIMIT_NS, -libc::ETIMEDOUT));
        }
        ring.wait(LIMIT_NS)?;
        if ring.has_completions() {
            ring.take(monotonic_ns, &mut completions);
        }
    }
    let took_ns = monotonic_ns() - begin;
    drop(std::mem::ManuallyDrop::into_inner(data));
    Ok((took_ns, completions[0].result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Route};

    fn open(path: &std::path::Path) -> Targets {
        let default = Some(Route::to(path));
        Targets::open(&Layout { default, ..Layout::default() }).unwrap()
    }

    #[test]
    fn a_target_that_cannot_be_polled_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let short = folder.path().join("short");
        std::fs::write(&short, [1; 512]).unwrap();
        let message = check_polling(&open(&short)).unwrap_err().to_string();
        assert!(message.contains("short") && message.contains("--poll-completions"), "{message}");
    }

    #[test]
    fn a_read_by_interrupt_is_timed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, vec![1; 65_536]).unwrap();
        assert!((100..1_000_000_000).contains(&read_ns(&open(&file), false).unwrap()));
    }
}
