//! Tests of plans: complete, balanced, randomised in blocks, stable; every mistake is named.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;
use weir_study::{Architecture, Engine, Plan, Run, Testbed};

use crate::support::{plan_file, plan_text, study_file};

const TRIAL: &str = "\
name: trial
question: Does it work?
testbed: device
seed: 7
repetitions: 4
warmup_s: 1
duration_s: 2
storage: {profile: hdd-7200, heads: 2, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10, priority: be/4}
  video: {workload: mpeg-vbr, clients: 3}
factors:
  scheduler: [none, mq-deadline, bfq]
  architecture: [partitioned, integrated]
  load: [0.5, 1]
exclude:
  - {scheduler: bfq, load: 1.0}
duplicate: false
";

#[test]
fn the_shipped_studies_are_valid_and_as_large_as_they_say() {
    for (name, runs) in [("quick", 24 + 3 + 12), ("kernel-schedulers", 120 + 5), ("file-systems", 25 + 5)] {
        let plan = plan_file(&study_file(name)).unwrap();
        assert_eq!(plan.runs.len(), runs, "{name}");
    }
}

#[test]
fn a_duplicate_is_one_more_run_of_the_first_cell_in_each_block() {
    let plain = plan_text(TRIAL).unwrap();
    let twice = plan_text(&TRIAL.replace("duplicate: false", "duplicate: true")).unwrap();
    let ids = |keep: fn(&&Run) -> bool| {
        twice.runs.iter().filter(keep).map(|run| run.id.clone()).collect::<Vec<_>>()
    };
    // The other runs have the same ids in the same order.
    assert_eq!(ids(|run| !run.duplicate), plain.runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>());
    let duplicates: Vec<&Run> = twice.runs.iter().filter(|run| run.duplicate).collect();
    assert_eq!(duplicates.iter().map(|run| run.block).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for run in duplicates {
        let same: Vec<&Run> = twice
            .runs
            .iter()
            .filter(|other| (&other.cell, other.block) == (&run.cell, run.block) && !other.duplicate)
            .collect();
        assert_eq!(same.len(), 1);
        assert_eq!((&same[0].levels, same[0].seed), (&run.levels, run.seed));
        assert_ne!(same[0].id, run.id);
    }
    let orders: Vec<u32> = twice.runs.iter().map(|run| run.order).collect();
    assert_eq!(orders, (0..u32::try_from(twice.runs.len()).unwrap()).collect::<Vec<_>>());
    let places: BTreeSet<u32> =
        twice.runs.iter().filter(|run| run.duplicate).map(|run| run.order % 11).collect();
    assert!(places.len() > 1, "{places:?}");
}

#[test]
fn a_duplicate_needs_a_device() {
    let text =
        TRIAL.replace("testbed: device", "testbed: simulator").replace("duplicate: false", "duplicate: true");
    let error = plan_text(&text).unwrap_err().to_string();
    assert!(error.contains("duplicate: needs testbed `device`"), "{error}");
    // Of a study on both testbeds, only the runs on devices have it.
    let both = TRIAL
        .replace("testbed: device", "testbed: [device, simulator]")
        .replace("duplicate: false", "duplicate: true")
        .replace(", priority: be/4", "");
    let plan = plan_text(&both).unwrap();
    assert!(plan.runs.iter().filter(|run| run.duplicate).all(|run| run.testbed == Testbed::Device));
    assert_eq!(plan.runs.iter().filter(|run| run.duplicate).count(), 4);
}

#[test]
fn a_study_on_devices_has_duplicates_unless_they_can_tell_nothing() {
    let duplicates = |change: &[(&str, &str)]| {
        let text = change.iter().fold(TRIAL.replace("duplicate: false\n", ""), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        plan_text(&text).unwrap().runs.iter().filter(|run| run.duplicate).count()
    };
    assert_eq!(duplicates(&[]), 4);
    assert_eq!(duplicates(&[("repetitions: 4", "repetitions: 3")]), 3);
    assert_eq!(duplicates(&[("repetitions: 4", "repetitions: 2")]), 0);
    assert!(!plan_file(&study_file("hds-alone")).unwrap().runs.iter().any(|run| run.duplicate));
    let one_cell = [
        ("[none, mq-deadline, bfq]", "[none]"),
        ("[partitioned, integrated]", "[partitioned]"),
        ("[0.5, 1]", "[1]"),
        ("exclude:\n  - {scheduler: bfq, load: 1.0}\n", ""),
    ];
    assert_eq!(duplicates(&one_cell), 0);
    assert_eq!(plan_text(TRIAL).unwrap().runs.iter().filter(|run| run.duplicate).count(), 0);
}

const VARIED: &str = "\
name: trial
question: Does it work?
testbed: simulator
seed: 7
repetitions: 2
warmup_s: 1
duration_s: 2
storage: {profile: hdd-7200, heads: 4, size_mib: 1024}
classes:
  text: {workload: poisson-text, clients: 10}
  video: {workload: mpeg-vbr, clients: 3}
factors:
  variant:
    plain: {}
    lopsided: {classes.text.heads: 3, classes.video.heads: 1, classes.text.weight: 3}
    other: {storage.profile: seagate-elite3, classes.text.with.files.count: 7, classes.text.workload: zipf-class1}
  architecture: [partitioned]
exclude:
  - {variant: plain, architecture: integrated}
";

#[test]
fn variants_differ_in_the_fields_they_name_and_in_nothing_else() {
    let plan = plan_text(&VARIED.replace("[partitioned]", "[partitioned, integrated]")).unwrap();
    assert_eq!(plan.runs.len(), 2 * 5);
    let of = |name: &str| {
        let is_it = |run: &&Run| run.levels["variant"] == name && run.levels["architecture"] == "partitioned";
        plan.runs.iter().find(is_it).unwrap()
    };
    let heads = |run: &Run| run.devices.iter().map(|device| device.heads).collect::<Vec<_>>();
    assert_eq!((heads(of("plain")), heads(of("lopsided"))), (vec![2, 2], vec![3, 1]));
    let text = |run: &Run| run.classes.iter().find(|class| class.name == "text").cloned().unwrap();
    let weight = |run: &Run| text(run).simulated.unwrap().weight;
    assert_eq!((weight(of("plain")), weight(of("lopsided")), weight(of("other"))), (1.0, 3.0, 1.0));
    assert_eq!(text(of("other")).recipe.requests().unwrap().files.count, 7);
    assert_eq!(
        (text(of("other")).workload.as_str(), text(of("plain")).workload.as_str()),
        ("zipf-class1", "poisson-text")
    );
    assert_eq!(of("other").devices[0].profile, "seagate-elite3");
    assert_eq!(of("plain").devices[0].profile, "hdd-7200");
    // All are asked with the same seed within a block.
    assert_eq!(of("plain").block == of("other").block, of("plain").seed == of("other").seed);
}

#[test]
fn a_mistake_in_a_variant_is_placed_in_the_variant() {
    for (field, said) in [
        ("classes.text.head: 3", "factors.variant.plain.classes.text.head: unknown field `head`"),
        ("storage.profile: elite", "factors.variant.plain.storage.profile"),
        ("seed: 3", "`seed` is the same in all variants"),
        ("classes.text.with.files.cuont: 3", "files.cuont"),
        ("classes.text.heads: 4", "storage.heads"),
        ("question.x: 4", "there is nothing below this field"),
    ] {
        let both = VARIED.replace("[partitioned]", "[partitioned, integrated]");
        let found = plan_text(&both.replace("plain: {}", &format!("plain: {{{field}}}"))).unwrap_err();
        assert!(found.contains(said) && found.contains("factors.variant.plain"), "{field}: {found}");
    }
}

#[test]
fn every_block_holds_every_cell_once_in_an_order_of_its_own() {
    let plan = plan_text(TRIAL).unwrap();
    let cells = 3 * 2 * 2 - 2;
    assert_eq!(plan.runs.len(), cells * 4);
    let blocks: Vec<Vec<&str>> =
        plan.runs.chunks(cells).map(|block| block.iter().map(|run| run.cell.as_str()).collect()).collect();
    let all: BTreeSet<&str> = blocks[0].iter().copied().collect();
    assert_eq!(all.len(), cells);
    for block in &blocks {
        assert_eq!(block.iter().copied().collect::<BTreeSet<_>>(), all);
    }
    assert!(blocks.windows(2).any(|pair| pair[0] != pair[1]), "no block was shuffled");
    let ids: HashSet<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids.len(), plan.runs.len(), "two runs share a name");
}

#[test]
fn all_cells_of_a_block_are_asked_the_same_and_blocks_differ() {
    let plan = plan_text(TRIAL).unwrap();
    let mut seeds: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for run in &plan.runs {
        seeds.entry(run.block).or_default().insert(run.seed);
    }
    assert!(seeds.values().all(|seeds| seeds.len() == 1));
    assert_eq!(seeds.values().flatten().collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn a_plan_is_the_same_each_time_and_moves_with_the_seed() {
    assert_eq!(plan_text(TRIAL), plan_text(TRIAL));
    let other = plan_text(&TRIAL.replace("seed: 7", "seed: 8")).unwrap();
    assert_ne!(other.runs[0].seed, plan_text(TRIAL).unwrap().runs[0].seed);
}

#[test]
fn words_do_not_change_a_runs_name_but_settings_do() {
    let ids = |text: &str| -> BTreeSet<String> {
        plan_text(text).unwrap().runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!(ids(TRIAL), ids(&TRIAL.replace("Does it work?", "Does it really work?")));
    assert!(ids(TRIAL).is_disjoint(&ids(&TRIAL.replace("clients: 10", "clients: 30"))));
    assert!(ids(TRIAL).is_subset(&ids(&TRIAL.replace("load: [0.5, 1]", "load: [0.5, 1, 2]"))));
    assert!(ids(TRIAL).is_subset(&ids(&TRIAL.replace("repetitions: 4", "repetitions: 6"))));
}

#[test]
fn architecture_decides_who_asks_which_device() {
    for run in plan_text(TRIAL).unwrap().runs {
        let device = |class: &str| run.classes.iter().find(|c| c.name == class).unwrap().device.clone();
        let heads: Vec<u32> = run.devices.iter().map(|device| device.heads).collect();
        match run.settings.architecture {
            Architecture::Partitioned => {
                assert_eq!((device("text"), device("video")), ("text".into(), "video".into()));
                assert_eq!(heads, [1, 1]);
            }
            Architecture::Integrated => {
                assert_eq!((device("text"), device("video")), ("shared".into(), "shared".into()));
                assert_eq!(heads, [2]);
            }
        }
        assert!(run.classes.iter().all(|class| class.engine == Engine::Replay));
        let text = run.classes.iter().find(|class| class.name == "text").unwrap();
        assert_eq!(f64::from(text.clients), 10.0 * run.settings.load);
    }
}

/// The trial on both testbeds, with two file systems and one without a device.
fn both() -> String {
    TRIAL
        .replace("testbed: device", "testbed: [device, simulator]")
        .replace(", priority: be/4", "")
        .replace("[none, mq-deadline, bfq]", "[none, mq-deadline read_expire=100, bfq]")
        .replace("  load:", "  filesystem: [ext4, xfs, tmpfs]\n  load:")
}

#[test]
fn both_testbeds_are_asked_the_same_and_have_names_of_their_own() {
    let plan = plan_text(&both()).unwrap();
    let (device, simulator): (Vec<_>, Vec<_>) =
        plan.runs.iter().partition(|run| run.testbed == Testbed::Device);
    assert_eq!(device.len(), (3 * 3 * 2 * 2 - 3 * 2) * 4);
    // No file system, and so none of memory.
    assert_eq!(simulator.len(), (3 * 2 * 2 - 2) * 4);
    let seed =
        |runs: &[&Run]| -> BTreeMap<u32, u64> { runs.iter().map(|run| (run.block, run.seed)).collect() };
    assert_eq!(seed(&device), seed(&simulator));
    let policies: BTreeSet<String> = simulator.iter().map(|run| run.settings.scheduler.to_string()).collect();
    assert_eq!(policies, ["fcfs", "linux-bfq", "linux-mq-deadline read_expire=100"].map(String::from).into());
    for run in simulator {
        assert_eq!(run.settings.filesystem, "raw");
        assert_eq!(run.settings.queue_depth, 4, "as on devices");
        assert_eq!(run.levels["filesystem"], "raw");
        assert_eq!(run.levels["testbed"], "simulator");
        assert!(run.classes.iter().all(|class| class.simulated.is_some()));
    }
    assert_eq!(plan.factors["filesystem"], serde_json::json!(["ext4", "xfs", "tmpfs", "raw"]));
    assert_eq!(plan.factors["testbed"], serde_json::json!(["device", "simulator"]));
    let orders: Vec<u32> = plan.runs.iter().map(|run| run.order).collect();
    assert_eq!(orders, (0..plan.runs.len() as u32).collect::<Vec<_>>());
}

#[test]
fn a_testbed_more_changes_no_run_of_the_first() {
    let ids = |text: &str| -> Vec<String> {
        let runs = plan_text(text).unwrap().runs.into_iter();
        runs.filter(|run| run.testbed == Testbed::Device).map(|run| run.id).collect()
    };
    assert_eq!(ids(&both()), ids(&both().replace("[device, simulator]", "device")));
}

#[test]
fn estimates_of_some_runs_are_those_of_these_runs() {
    let whole = plan_text(TRIAL).unwrap();
    let (runs, id) = (whole.runs.len(), whole.runs[0].id.clone());
    let one = whole.clone().of_runs(|run| run.id == id);
    assert_eq!((one.runs.len(), &one.devices), (1, &whole.devices));
    assert!((one.estimate_s * runs as f64 - whole.estimate_s).abs() < 1e-6, "all runs take as long");
    assert_eq!(one.largest_run, one.runs[0].estimate());
    assert_eq!(whole.of_runs(|_| false).estimate_s, 0.0);
}

#[test]
fn a_part_of_a_plan_says_why_and_has_only_its_levels() {
    let whole = plan_text(&both()).unwrap();
    let part = whole.clone().on(Testbed::Simulator, "no root");
    assert_eq!((part.note.as_str(), part.testbeds.as_slice()), ("no root", [Testbed::Simulator].as_slice()));
    assert_eq!(part.factors["filesystem"], serde_json::json!(["raw"]));
    assert_eq!(part.factors["testbed"], serde_json::json!(["simulator"]));
    assert!(part.estimate_s < whole.estimate_s);
    let kept: Vec<_> = whole.runs.into_iter().filter(|run| run.testbed == Testbed::Simulator).collect();
    assert_eq!(part.runs, kept);
}

#[test]
fn what_nothing_in_virtual_time_stands_for_is_refused() {
    for (from, to, expected) in [
        (
            "  load:",
            "  wbt_lat_usec: [0, 75000]\n  load:",
            "factors.wbt_lat_usec: is a setting of the kernel",
        ),
        (
            "  load:",
            "  read_ahead_kib: [0, 128]\n  load:",
            "factors.read_ahead_kib: is a setting of the kernel",
        ),
        ("read_expire=100", "front_merges=0", "has no setting `front_merges`"),
        ("clients: 3", "clients: 3, cache_mib: 4", "applies to `testbed: simulator` only"),
        ("scheduler: bfq, ", "testbed: simulator, scheduler: kyber, ", "unknown level `kyber`"),
    ] {
        let error = plan_text(&both().replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let without = both().replace("scheduler: bfq, ", "testbed: simulator, scheduler: bfq, ");
    assert_eq!(plan_text(&without).unwrap().runs.len(), (3 * 3 * 2 * 2 + 3 * 2 * 2 - 2) * 4);
}

#[test]
fn a_comparison_is_in_the_plan_and_changes_no_run() {
    let text = TRIAL.replace("seed: 7", "seed: 7\ncomparison: {factor: load, baseline: 0.5}");
    let (with, without) = (plan_text(&text).unwrap(), plan_text(TRIAL).unwrap());
    assert_eq!(with.comparison.as_ref().unwrap().factor, "load");
    assert_eq!(Plan { comparison: None, ..with }, without);
}

#[test]
fn precision_adds_repetitions_and_changes_no_run() {
    let wanted = "seed: 7\nprecision: {class: text, effect: 0.1, at_most: 9}";
    let (with, without) = (plan_text(&TRIAL.replace("seed: 7", wanted)).unwrap(), plan_text(TRIAL).unwrap());
    assert_eq!((with.repetitions, with.first_repetitions), (9, Some(4)));
    assert_eq!(with.precision.as_ref().unwrap().confidence, 0.95);
    assert_eq!(with.runs[..without.runs.len()], without.runs[..]);
    assert_eq!(with.runs.len() * 4, without.runs.len() * 9);
}

#[test]
fn every_mistake_of_a_precision_is_named_with_its_line() {
    for (fields, expected) in [
        ("at_most: 9", "precision: has neither `width` nor `effect`: say `effect: 0.1`"),
        ("width: 0.1, effect: 0.1, at_most: 9", "precision: has both `width` and `effect`"),
        ("width: 0, at_most: 9", "precision.width: is 0; it must be from 0.001"),
        ("effect: 11, at_most: 9", "precision.effect: is 11; it must be from 0.001"),
        ("width: 0.1, at_most: 3", "precision.at_most: is 3; it must be from 4 to 1000"),
        (
            "width: 0.1, at_most: 9, confidence: 95",
            "precision.confidence: is 95; it must be from 0.5 to 0.999",
        ),
        ("width: 0.1, at_most: 9, class: txt", "precision.class: unknown class `txt`; did you mean `text`?"),
        ("width: 0.1, at_most: 9, metric: response_p95", "did you mean `response_p95_ms`?"),
        ("width: 0.1, at_most: 9, cell: {loat: 1}", "unknown factor `loat`; did you mean `load`?"),
        ("width: 0.1, at_most: 9, cell: {load: 2}", "precision.cell.load: is 2, which is no level of `load`"),
        ("effect: 0.1, at_most: 9, cell: {load: 1}", "precision.effect: needs a comparison"),
        (
            "width: 0.1, at_most: 9, stop: each",
            "precision.stop: is `each`, but a comparison needs its levels together",
        ),
        (
            "width: 0.1, at_most: 9, cell: {}, stop: alone",
            "precision.stop: found `alone`, expected `each` or `together`",
        ),
        ("width: 0.1", "at_most"),
    ] {
        let error =
            plan_text(&TRIAL.replace("seed: 7", &format!("seed: 7\nprecision: {{{fields}}}"))).unwrap_err();
        assert!(error.contains(expected), "{fields}: {error}");
        assert!(error.contains("trial.yml:5:"), "{fields}: {error}");
    }
}

#[test]
fn a_plan_survives_json() {
    let fields =
        "seed: 7\ncomparison: {factor: load}\nprecision: {width: 0.1, cell: {}, stop: each, at_most: 9}";
    let plan = plan_text(&TRIAL.replace("seed: 7", fields)).unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (from, to, line, expected) in [
        ("mq-deadline, bfq", "mq-dedline, bfq", 13, "did you mean `mq-deadline`?"),
        ("poisson-text", "poisson-txt", 10, "did you mean `poisson-text`?"),
        ("hdd-7200", "hdd-720", 8, "did you mean `hdd-7200`?"),
        ("repetitions: 4", "repetitions: 0", 5, "is 0; it must be from 1"),
        ("repetitions: 4", "repetitons: 4", 5, "did you mean `repetitions`?"),
        ("clients: 3", "clients: 0", 11, "is 0"),
        ("be/4", "be/9", 10, "use rt/0 to rt/7"),
        ("scheduler: bfq", "scheduler: kyber", 17, "unknown level `kyber`"),
        ("load: 1.0", "weight: 1.0", 17, "unknown factor `weight`"),
        ("heads: 2", "heads: 1", 8, "needs one for each class"),
        ("size_mib: 1024", "size_mib: 100", 8, "MiB"),
        ("[0.5, 1]", "[0.5, 0.5]", 15, "given twice"),
        ("[0.5, 1]", "[]", 15, "no levels"),
        ("name: trial", "name: other", 1, "make them the same"),
        ("testbed: device", "testbed: divice", 3, "did you mean `device`?"),
        ("testbed: device", "testbed: [device, simulato]", 3, "did you mean `simulator`?"),
        ("testbed: device", "testbed: []", 3, "is empty"),
        ("[0.5, 1]", "[0.9, 1, 1.1]", 15, "at both of which class video has 3 of its 3 clients"),
        ("seed: 7", "seed: 7\ncomparison: {factor: architektur}", 5, "did you mean `architecture`?"),
        (
            "seed: 7",
            "seed: 7\ncomparison: {factor: architecture, baseline: apart}",
            5,
            "is \"apart\", which is no level of `architecture`: use one of \"partitioned\", \"integrated\"",
        ),
        ("testbed: device", "testbed: [device, simulator]", 10, "has no I/O priorities"),
    ] {
        let error = plan_text(&TRIAL.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
        assert!(error.contains(&format!("trial.yml:{line}:")), "{to}: line {line} expected: {error}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = TRIAL.replace("repetitions: 4", "repetitions: 0").replace("clients: 3", "clients: 0");
    assert_eq!(plan_text(&text).unwrap_err().lines().count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_damaged_study_is_an_error_and_never_a_panic(at in 0..TRIAL.len(), byte in 0x20u8..0x7f) {
        let mut text = TRIAL.as_bytes().to_vec();
        text[at] = byte;
        let _ = plan_text(std::str::from_utf8(&text).unwrap());
    }
}

#[test]
fn a_study_without_admission_keeps_the_names_of_its_runs() {
    let settings = serde_json::to_value(&plan_text(TRIAL).unwrap().runs[0].settings).unwrap();
    assert!(settings.get("admission").is_none());
}
