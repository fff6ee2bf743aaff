//! Requirements of BPF programs, and reasons why they cannot be loaded.

use std::fs;
use std::path::Path;

use crate::detached::DetachedMount;

/// BTF, the kernel's type information, which CO-RE programs need for relocation.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Bits of capability sets (`include/uapi/linux/capability.h`).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// What this process lacks for BPF, checked before loading; `None` if nothing is known to be missing.
pub fn missing_for_bpf() -> Option<String> {
    if !Path::new(BTF).exists() {
        return Some(format!("the kernel has no {BTF} (CONFIG_DEBUG_INFO_BTF=n)"));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective & (1 << capability) != 0;
    if !(has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)) {
        return Some("this needs root, or CAP_BPF and CAP_PERFMON".to_owned());
    }
    if lockdown_mode().as_deref() == Some("confidentiality") {
        return Some("kernel lockdown is in mode confidentiality".to_owned());
    }
    None
}

/// The kernel's lockdown mode, `none`, `integrity` or `confidentiality`; `None` if securityfs does not have it.
pub fn lockdown_mode() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").or_else(|_| {
        let mount = DetachedMount::new(c"securityfs")?;
        fs::read_to_string(mount.root().join("lockdown"))
    });
    let text = text.ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Explains a refusal by libbpf.
pub(crate) fn explain(what: &str, error: &libbpf_rs::Error) -> String {
    let reason = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            "the kernel refused (EPERM or EACCES): this needs root, or CAP_BPF and CAP_PERFMON".to_owned()
        }
        _ => format!("{error:#}").replace('\n', " "),
    };
    format!("{what}: {reason}")
}
