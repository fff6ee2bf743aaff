//! Settings of the kernel in `/sys`.

use std::fs;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a file that is busy is tried again.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Writes a setting. The kernel refuses some with `EBUSY` while another disk of the same driver is set up or taken down
/// (`nr_requests` since Linux 6.16); that passes.
///
/// # Errors
/// The kernel refuses for another reason, or for longer than 2 s.
pub fn write(file: &Path, value: &str) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match fs::write(file, value) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < PATIENCE => {
                sleep(POLL_INTERVAL);
            }
            done => return done,
        }
    }
}

/// The selected word of a choice: `b` of `a [b] c`. Text without brackets is returned whole, trimmed.
#[must_use]
pub fn selected(text: &str) -> &str {
    let text = text.trim();
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_word_stands_in_brackets() {
        assert_eq!(selected("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(selected("128\n"), "128");
        assert_eq!(selected("]none["), "]none[");
    }
}
