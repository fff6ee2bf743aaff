//! Decisions at the defaults, as recorded. A change of a default changes the results of every study that names the scheduler
//! without settings, so it must be intended.

use weir_scheduler::guarantee::Task;
use weir_scheduler::{Class, Contract, Op, POLICIES, Request, Settings, TrafficKind, build};

use crate::harness::{SLOT_BYTES, SLOTS, run};

/// FNV-1a of the decisions of each scheduler on [`load`]: time and tag of each served request.
const RECORDED: [(&str, u64); 33] = [
    ("fcfs", 0xaef5_030f_3ae8_2f03),
    ("sstf", 0xccb6_ff71_94ec_c1c7),
    ("satf", 0x65c1_827e_5dcb_8709),
    ("look", 0xac38_8129_5916_10ca),
    ("scan", 0xac38_8129_5916_10ca),
    ("c-look", 0x2790_fff5_51cd_2713),
    ("c-scan", 0x2790_fff5_51cd_2713),
    ("fscan", 0x4a43_34cf_8107_6dc7),
    ("n-step-scan", 0x30fb_c239_2614_c578),
    ("edf", 0xc98d_e0dd_0b68_5fe5),
    ("scan-edf", 0xf6ac_ca0d_b2d7_768b),
    ("round-robin", 0xdd36_0e68_b05f_b0d0),
    ("sfq", 0x746b_1c73_2874_1e3d),
    ("wf2q+", 0x712d_63f2_05ab_c541),
    ("cello", 0x3d9c_f640_478e_f93f),
    ("wr-round", 0x27b5_2b67_0a4d_f897),
    ("edf-background", 0xf940_aa94_183b_54f1),
    ("usd", 0x3a96_5342_1cec_5ca6),
    ("lst", 0xa47d_2141_23f4_279c),
    ("deltal", 0xae92_c69b_e03c_0e33),
    ("hds", 0x2790_fff5_51cd_2713),
    ("linux-mq-deadline", 0x074e_47b5_6d82_8824),
    ("linux-kyber", 0xa6b2_6ef7_e4fb_7db5),
    ("linux-bfq", 0xa5fa_fc86_156d_a47f),
    ("linux-elevator-linus", 0x1e76_da45_52f0_253f),
    ("cello period_ms=100", 0x3319_0824_fc16_285b),
    ("cello interactive=fcfs", 0x262e_a15b_f7ea_7a57),
    ("cello interactive=merged", 0xe84b_d45e_eb5a_5912),
    ("wr-round round_ms=100", 0xaea9_c839_0ae1_9be1),
    ("wr-round interactive_per_s=2", 0x05a0_e816_b896_60c0),
    ("deltal mode=thesis accounting=free server=container", 0xf7e3_4755_f23b_d20c),
    ("hds root_kb_s=200", 0xd779_2a36_c3a7_6d7b),
    ("hds root_kb_s=200 clients=apart", 0x643b_2adb_13bb_ffa0),
];

/// Settings at the value that their documentation calls the default.
const DEFAULTS: [(&str, &str); 4] = [
    (
        "cello period_ms=100",
        "estimate=bound interactive=scan deadline_batch_ms=0 sweep=c-scan batches=interval slack=dispatch",
    ),
    (
        "wr-round",
        "round_ms=500 periodic=50 aperiodic=25 subgroup=4 interactive_per_s=12 burst=12 estimate=bound bucket=sliding late_aperiodic=join late_periodic=join",
    ),
    (
        "deltal",
        "mode=exact accounting=overlap debit=estimate server=sporadic early=keep long=trust spare=leave oversize=skip rules=exact",
    ),
    (
        "hds root_kb_s=200",
        "clients=together burst_ms=500 leave_ms=1000 root=fixed tolerance=5 below=c-look pass=any",
    ),
];

/// Numbers that look random and are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }
}

/// 400 requests of three classes in bursts, at about 0.9 of the disk's rate.
fn load() -> Vec<Request> {
    let mut numbers = Numbers(7);
    let mut now_ns = 0;
    let request = |tag| {
        if numbers.below(3) == 0 {
            now_ns += numbers.below(45_000_000);
        }
        let class = numbers.below(3) as u16;
        let slack_ns = 20_000_000 * (1 + numbers.below(8));
        Request {
            tag,
            class,
            stream: numbers.below(2) as u32,
            op: if numbers.below(3) > 0 { Op::Read } else { Op::Write },
            offset_bytes: numbers.below(SLOTS) * SLOT_BYTES,
            size_bytes: 512 * (1 + numbers.below(8) as u32),
            arrived_ns: now_ns,
            deadline_ns: (class == 0).then_some((now_ns + slack_ns) / 20_000_000 * 20_000_000),
        }
    };
    (0..400).map(request).collect()
}

fn classes() -> [Class; 3] {
    let contract = Task::new(20_000_000, 400_000_000).map(|task| Contract { task, streams: 2 });
    let class = |name: &str, kind, weight, contract| Class { name: name.to_owned(), kind, weight, contract };
    [
        class("video", TrafficKind::RealTime, 2.0, contract.ok()),
        class("text", TrafficKind::Interactive, 1.0, None),
        class("bulk", TrafficKind::BestEffort, 3.0, None),
    ]
}

/// Hash of the decisions of a scheduler, written as in a study: `hds root_kb_s=200`.
fn decisions(scheduler: &str) -> u64 {
    let mut words = scheduler.split_whitespace();
    let name = words.next().unwrap();
    let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut policy = build(name, &classes(), &Settings(words.filter_map(pair).collect())).unwrap();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for choice in run(&mut *policy, &load(), 1, false) {
        for byte in [choice.now_ns, choice.chosen.tag].iter().flat_map(|number| number.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

#[test]
fn decisions_at_the_defaults_are_the_recorded_ones() {
    for entry in POLICIES {
        assert!(RECORDED.iter().any(|(scheduler, _)| *scheduler == entry.name), "record `{}`", entry.name);
    }
    let found = RECORDED.map(|(scheduler, _)| (scheduler, decisions(scheduler)));
    let table: String =
        found.iter().map(|(name, hash)| format!("    (\"{name}\", {hash:#018x}),\n")).collect();
    assert_eq!(found, RECORDED, "found\n{table}");
}

#[test]
fn documented_defaults_change_nothing() {
    for (scheduler, defaults) in DEFAULTS {
        for default in defaults.split_whitespace() {
            assert_eq!(
                decisions(&format!("{scheduler} {default}")),
                decisions(scheduler),
                "{scheduler} {default}"
            );
        }
    }
}
