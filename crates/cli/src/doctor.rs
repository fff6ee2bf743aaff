//! `weir doctor`: what this host can and cannot do, with the remedy for each.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weir_collectors::capability::missing_for_bpf;
use weir_scheduler::KERNEL_SCHEDULERS;

use crate::analysis;
use crate::exit;
use crate::output::{self, Output};
use crate::project::Project;

/// Say what this host can and cannot do, and what to do about it. Changes nothing.
///
/// Exit code 3: something is missing; studies that do not need it can be run.
#[derive(clap::Args)]
pub struct Args {}

/// One thing that some studies need.
#[derive(Serialize)]
struct Check {
    /// What it is for.
    purpose: &'static str,
    needs: String,
    /// Why it is missing; none if it is there.
    missing: Option<String>,
    remedy: Option<&'static str>,
}

pub fn run(_: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let checks = checks();
    let missing = checks.iter().filter(|check| check.missing.is_some()).count();
    if output.is_json() {
        output::document(&checks)?;
    } else {
        let mut purpose = "";
        for check in &checks {
            if check.purpose != purpose {
                purpose = check.purpose;
                println!("{purpose}");
            }
            match (&check.missing, check.remedy) {
                (None, _) => println!("  ok       {}", check.needs),
                (Some(reason), remedy) => {
                    println!("  missing  {}: {reason}", check.needs);
                    println!("           {}", remedy.unwrap_or("no remedy is known"));
                }
            }
        }
        println!("{} of {} are there", checks.len() - missing, checks.len());
    }
    Ok(ExitCode::from(if missing == 0 { 0 } else { 3 }))
}

const STUDIES: &str = "studies in virtual time";
const RESULTS: &str = "reports, notebooks, comparisons";
const DEVICES: &str = "studies on block devices";
const CAPTURE: &str = "latency of block requests";
const LIMITS: &str = "limits of classes by the kernel";

fn checks() -> Vec<Check> {
    let mut found = vec![
        check(
            STUDIES,
            "studies and workloads",
            Project::find().err().map(|error| error.to_string()),
            "call weir init",
        ),
        check(
            RESULTS,
            "Python with the package weir",
            Project::find().ok().and_then(|project| analysis::missing(&project)),
            analysis::INSTALL,
        ),
        check(DEVICES, "root", not_root(), "call it with sudo, or use testbed: simulator"),
        check(DEVICES, "io_uring", io_uring(), "sysctl kernel.io_uring_disabled=0, Linux 5.15 or later"),
        check(DEVICES, "loop devices (modelled disks)", absent("/dev/loop-control"), "modprobe loop"),
        check(DEVICES, "FUSE (modelled disks)", absent("/dev/fuse"), "modprobe fuse"),
    ];
    for (program, purpose, remedy) in [
        ("fio", "fio (closed loops)", "apt-get install fio"),
        ("mkfs.ext4", "mkfs.ext4", "apt-get install e2fsprogs"),
        ("mkfs.xfs", "mkfs.xfs", "apt-get install xfsprogs"),
        ("mkfs.btrfs", "mkfs.btrfs", "apt-get install btrfs-progs"),
    ] {
        found.push(check(DEVICES, purpose, not_on_path(program), remedy));
    }
    let schedulers = schedulers();
    for scheduler in KERNEL_SCHEDULERS {
        let missing = (!schedulers.iter().any(|known| known == scheduler.name))
            .then(|| "no disk of this host offers it".to_owned());
        let needs = format!("I/O scheduler {}", scheduler.name);
        let remedy = "load its module (modprobe mq-deadline, kyber-iosched, bfq), or use another kernel";
        found.push(Check { purpose: DEVICES, needs, remedy: missing.is_some().then_some(remedy), missing });
    }
    found.push(check(
        CAPTURE,
        "BPF with BTF",
        missing_for_bpf(),
        "root, and a kernel with CONFIG_DEBUG_INFO_BTF=y",
    ));
    found.push(check(
        CAPTURE,
        "blktrace(8)",
        blktrace(),
        "apt-get install blktrace where the kernel permits it; weir collect works without",
    ));
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    let io = (!controllers.split_whitespace().any(|name| name == "io"))
        .then(|| "the controller io is not in cgroup v2 (/sys/fs/cgroup/cgroup.controllers)".to_owned());
    found.push(check(
        LIMITS,
        "controller io of cgroup v2",
        io,
        "weir controllers --move, or boot with systemd.unified_cgroup_hierarchy=1",
    ));
    found
}

fn check(purpose: &'static str, needs: &str, missing: Option<String>, remedy: &'static str) -> Check {
    Check { purpose, needs: needs.to_owned(), remedy: missing.is_some().then_some(remedy), missing }
}

fn absent(path: &str) -> Option<String> {
    (!Path::new(path).exists()).then(|| format!("there is no {path}"))
}

fn not_root() -> Option<String> {
    (!rustix::process::geteuid().is_root()).then(|| "this is not root".to_owned())
}

fn io_uring() -> Option<String> {
    match fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        Ok(text) if text.trim() == "0" => None,
        Ok(text) => Some(format!("kernel.io_uring_disabled is {}", text.trim())),
        // Before Linux 6.6 it could not be disabled.
        Err(_) => None,
    }
}

fn not_on_path(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    (!there).then(|| "it is not installed".to_owned())
}

fn blktrace() -> Option<String> {
    not_on_path("blktrace").or_else(|| {
        let mode = weir_collectors::capability::lockdown_mode()?;
        (mode != "none").then(|| format!("kernel lockdown is in mode {mode}, which refuses its files"))
    })
}

/// What the disks of this host offer.
fn schedulers() -> Vec<String> {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let offered = disks.filter_map(|disk| fs::read_to_string(disk.path().join("queue/scheduler")).ok());
    let mut names: Vec<String> = offered
        .flat_map(|text| {
            text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect::<Vec<_>>()
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
