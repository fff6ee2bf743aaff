//! Tests of the factor `kernel`: order of the boots, and refusals.

use weir_study::{Plan, Run};

use crate::support::plan_text;

const KERNELS: &str = "\
name: trial
question: Does it work?
testbed: device
seed: 7
repetitions: 4
warmup_s: 1
duration_s: 2
storage: {profile: hdd-7200, heads: 2, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10}
factors:
  kernel: [a, b, c]
  scheduler: [none, mq-deadline, bfq]
";

fn kernel(run: &Run) -> &str {
    run.settings.kernel.as_deref().unwrap_or("-")
}

/// The kernels in the order of their boots.
fn boots(plan: &Plan) -> Vec<(u32, &str)> {
    let mut boots: Vec<(u32, &str)> = plan.runs.iter().map(|run| (run.block, kernel(run))).collect();
    boots.dedup();
    boots
}

#[test]
fn each_block_boots_each_kernel_once_and_every_other_block_in_reverse_order() {
    let plan = plan_text(KERNELS).unwrap();
    let order = [(0, "abc"), (1, "cba"), (2, "abc"), (3, "cba")];
    let expected: Vec<(u32, String)> = order
        .iter()
        .flat_map(|(block, names)| names.chars().map(|name| (*block, name.to_string())))
        .collect();
    assert_eq!(
        boots(&plan),
        expected.iter().map(|(block, name)| (*block, name.as_str())).collect::<Vec<_>>()
    );
    assert_eq!(plan.runs.iter().map(|run| run.order).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
    // The duplicate of a block is made under the boot of its cell.
    assert_eq!(plan.runs.iter().filter(|run| run.duplicate).map(kernel).collect::<Vec<_>>(), ["a"; 4]);
    assert_eq!(plan.factors.keys().collect::<Vec<_>>(), ["kernel", "scheduler"]);
    // Paired: all cells of a block have one seed. The order within a boot is random.
    let block: Vec<&Run> = plan.runs.iter().filter(|run| run.block == 0).collect();
    assert!(block.iter().all(|run| run.seed == block[0].seed));
    let of_a = |block| -> Vec<&str> {
        let runs = plan.runs.iter().filter(|run| run.block == block && kernel(run) == "a" && !run.duplicate);
        runs.map(|run| run.settings.scheduler.name.as_str()).collect()
    };
    assert!((1..4).any(|block| of_a(block) != of_a(0)), "the order within a boot never differs");
}

#[test]
fn a_study_without_kernels_keeps_order_and_ids() {
    let plain = KERNELS.replace("  kernel: [a, b, c]\n", "");
    let plan = plan_text(&plain).unwrap();
    assert!(plan.runs.iter().all(|run| run.settings.kernel.is_none()));
    let held = plan_text(&format!("{plain}hold: {{kernel: a}}\n")).unwrap();
    let order = |plan: &Plan| -> Vec<String> {
        plan.runs.iter().map(|run| run.settings.scheduler.name.clone()).collect()
    };
    assert_eq!(order(&held), order(&plan));
    assert!(plan.runs.iter().zip(&held.runs).all(|(plain, held)| plain.id != held.id));
}

#[test]
fn a_variant_may_hold_a_kernel() {
    let text =
        KERNELS.replace("  kernel: [a, b, c]\n", "  variant: {x: {hold.kernel: a}, y: {hold.kernel: b}}\n");
    let plan = plan_text(&text).unwrap();
    assert_eq!(boots(&plan)[..4], [(0, "a"), (0, "b"), (1, "b"), (1, "a")]);
}

#[test]
fn kernels_are_refused_in_virtual_time_on_several_hosts_and_under_bad_names() {
    for (from, to, said) in [
        (
            "testbed: device",
            "testbed: simulator",
            "factors.kernel: is a setting of the kernel without a counterpart in virtual time",
        ),
        ("testbed: device", "testbed: [device, simulator]", "factors.kernel: is a setting of the kernel"),
        ("[a, b, c]", "[a, ../b]", "factors.kernel.1: is `../b`"),
        ("[a, b, c]", "[a, a]", "factors.kernel.1: is given twice"),
        ("[a, b, c]", "[6.12, 6.18]", "factors.kernel"),
        (
            "testbed: device\n",
            "testbed: device\nhosts: {clients: 2}\n",
            "factors.kernel: is given, but a study with `hosts` boots none of its hosts",
        ),
    ] {
        let text = KERNELS.replace(from, to).replace(", mq-deadline, bfq", "");
        let found = plan_text(&text).unwrap_err();
        assert!(found.contains(said), "{to}: {found}");
    }
    let held = KERNELS.replace("  kernel: [a, b, c]\n", "") + "hold: {kernel: a}\n";
    let text =
        held.replace("testbed: device", "testbed: simulator").replace("[none, mq-deadline, bfq]", "[scan]");
    let found = plan_text(&text).unwrap_err();
    assert!(found.contains("hold.kernel: is given, but virtual time has no kernel"), "{found}");
}
