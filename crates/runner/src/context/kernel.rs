//! Check that a run is made under the kernel of its level.

use weir_study::Run;

use crate::Error;
use crate::context::testbed::Testbed;

/// Refuses a run whose kernel is not the one that was booted for it and still runs.
///
/// # Errors
/// [`Error::Refused`] with what was found, expected, and what to do.
pub(crate) fn check(run: &Run, testbed: &Testbed) -> Result<(), Error> {
    let refuse = |said: String| {
        Err(Error::Refused(format!(
            "run {}: {said}. Run the study with the playbook, which boots the kernel of each run (make study STUDY={})",
            run.id, run.study
        )))
    };
    let name = |kernel: Option<&str>| kernel.map_or_else(|| "none".to_owned(), |name| format!("`{name}`"));
    let (asked, booted) = (run.settings.kernel.as_deref(), testbed.kernel.as_ref());
    let found = booted.map(|kernel| kernel.name.as_str());
    if asked != found {
        return refuse(format!("testbed.json: kernel.name: found {}, expected {}", name(found), name(asked)));
    }
    match booted.and_then(|kernel| Some((kernel, kernel.difference()?))) {
        Some((kernel, difference)) => {
            refuse(format!("this host does not run kernel `{}`: {difference}", kernel.name))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kernel: Option<&str>) -> Run {
        let text = include_str!("../../tests/data/medium-run.json");
        let text = text.replace("FILESYSTEM", "raw").replace("TESTBED", "device");
        let mut run: Run = serde_json::from_str(&text).unwrap();
        run.settings.kernel = kernel.map(str::to_owned);
        run
    }

    /// The testbed of a kernel with this host's own facts, but for one of them.
    fn testbed(name: &str, boot_id: Option<&str>) -> Testbed {
        let read = |file: &str| {
            std::fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap().trim().to_owned()
        };
        let boot_id = boot_id.map_or_else(|| read("random/boot_id"), str::to_owned);
        let kernel = serde_json::json!({
            "name": name, "release": read("osrelease"), "version": read("version"), "boot_id": boot_id,
            "source": "a package", "image_sha256": "0",
        });
        serde_json::from_value(serde_json::json!({"devices": {}, "kernel": kernel})).unwrap()
    }

    #[test]
    fn only_the_booted_kernel_of_the_run_passes() {
        assert!(check(&run(None), &Testbed::default()).is_ok());
        assert!(check(&run(Some("a")), &testbed("a", None)).is_ok());
        for (run, testbed, said) in [
            (run(Some("a")), Testbed::default(), "kernel.name: found none, expected `a`"),
            (run(Some("a")), testbed("b", None), "kernel.name: found `b`, expected `a`"),
            (run(None), testbed("b", None), "kernel.name: found `b`, expected none"),
            (run(Some("a")), testbed("a", Some("another")), "does not run kernel `a`: boot_id: found"),
        ] {
            let refused = check(&run, &testbed).unwrap_err();
            assert!(refused.is_refusal() && refused.to_string().contains(said), "{refused}");
        }
    }
}
