//! Check of available memory before work begins.

use crate::exit::bad_input;

/// Refuses work that needs more memory than is available.
///
/// # Errors
/// Needed memory, available memory, and what to change.
pub fn fits_here(what: &str, needed_bytes: u64, remedy: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available_bytes(&text) {
        Some(available) if needed_bytes > available => {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            Err(bad_input(format!(
                "{what} needs about {} MiB of memory, and {} MiB are available here: {remedy}",
                mib(needed_bytes),
                mib(available)
            )))
        }
        _ => Ok(()),
    }
}

/// `MemAvailable` of /proc/meminfo.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_and_compared() {
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:      2048 kB\n"), Some(2 << 20));
        assert_eq!(available_bytes("MemTotal: 9 kB\n"), None);
        assert!(fits_here("it", 1, "").is_ok());
        let refused = fits_here("the run", u64::MAX, "use fewer clients").unwrap_err().to_string();
        assert!(refused.starts_with("the run needs about 17592186044416 MiB of memory, and "), "{refused}");
        assert!(refused.ends_with(" MiB are available here: use fewer clients"), "{refused}");
    }
}
