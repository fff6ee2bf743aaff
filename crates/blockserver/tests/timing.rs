//! Requests take the model's time. The bounds are coarse: tests run on busy machines. `examples/bench_serve.rs` measures.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{Server, read_at, skip};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_host::steal::{in_time, undisturbed};

fn random_reads(server: &Server, count: usize, seed: u64) -> Duration {
    let device = server.open();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let pages = server.state.spec.size_bytes() / 4096;
    let start = Instant::now();
    for _ in 0..count {
        read_at(&device, rng.random_range(0..pages) * 4096, 4096).unwrap();
    }
    start.elapsed()
}

#[test]
fn random_reads_of_a_disk_take_the_models_time() {
    if skip("random_reads_of_a_disk_take_the_models_time") {
        return;
    }
    undisturbed(|| {
        let server = Server::start("{name: hdd, profile: hdd-7200, size_mib: 1024}");
        server.control().stats(true).unwrap();
        let elapsed = random_reads(&server, 200, 1);
        let stats = server.control().stats(false).unwrap();
        assert_eq!(stats.service_error.count, 200, "{stats:?}");
        in_time(stats.service_error.median_ns < 1_000_000, format_args!("{stats:?}"));
        // 8.5 ms seek, 4.17 ms rotation, 0.1 ms command.
        assert!((11e6..15e6).contains(&stats.service.mean_ns), "{stats:?}");
        let seen_ns = elapsed.as_nanos() as f64 / 200.0;
        assert!(seen_ns >= stats.service.mean_ns, "{seen_ns}: {stats:?}");
        in_time(seen_ns < stats.service.mean_ns + 3e6, format_args!("{seen_ns}: {stats:?}"));
        assert_eq!(stats.max_queue_length, 1);
        let busy_ns = stats.busy_ns as f64;
        assert!((busy_ns / (200.0 * stats.service.mean_ns) - 1.0).abs() < 0.01, "{stats:?}");
    });
}

#[test]
fn a_new_device_does_not_keep_the_queue_of_an_old_one() {
    if skip("a_new_device_does_not_keep_the_queue_of_an_old_one") {
        return;
    }
    // The second server most likely gets the first one's loop device; the test holds if it does not.
    for (profile, rotational) in [("hdd-7200", "1"), ("ssd-sata", "0")] {
        let server = Server::start(&format!("{{name: queue, profile: {profile}, size_mib: 256}}"));
        let queue = format!("/sys/block/{}/queue", server.device().file_name().unwrap().to_str().unwrap());
        let read = |name: &str| std::fs::read_to_string(format!("{queue}/{name}")).unwrap().trim().to_owned();
        assert_eq!(read("rotational"), rotational);
        assert_eq!(read("nomerges"), "0");
        assert!(read("scheduler").starts_with("[none]"), "{}", read("scheduler"));
        let depth: usize = read("nr_requests").parse().unwrap();
        assert!(depth >= 64, "{depth}");
        weir_host::sysfs::write(format!("{queue}/nr_requests").as_ref(), "4").unwrap();
        std::fs::write(format!("{queue}/scheduler"), "mq-deadline").unwrap();
        std::fs::write(format!("{queue}/nomerges"), "2").unwrap();
    }
}

#[test]
fn timing_is_switched_off_and_on() {
    if skip("timing_is_switched_off_and_on") {
        return;
    }
    undisturbed(|| {
        let server = Server::start("{name: switch, profile: hdd-7200, size_mib: 1024}");
        let mut control = server.control();
        control.timing(false).unwrap();
        let (fast, stats) = (random_reads(&server, 100, 2), control.stats(true).unwrap());
        assert!(!stats.timing && stats.service_error.count == 0 && stats.read.requests == 100, "{stats:?}");
        control.timing(true).unwrap();
        let (slow, stats) = (random_reads(&server, 100, 2), control.stats(true).unwrap());
        assert!(stats.timing && stats.service_error.count == 100, "{stats:?}");
        assert!(slow > Duration::from_millis(900), "slow {slow:?}");
        in_time(fast < slow / 2, format_args!("fast {fast:?}, slow {slow:?}"));
        assert_eq!(control.stats(false).unwrap().read.requests, 0, "the statistics were reset");
    });
}

#[test]
fn requests_that_wait_are_answered_when_timing_is_switched_off() {
    if skip("requests_that_wait_are_answered_when_timing_is_switched_off") {
        return;
    }
    undisturbed(|| {
        let server = Server::start("{name: waiting, profile: hdd-7200, size_mib: 1024}");
        thread::scope(|scope| {
            let readers: Vec<_> = (0..16)
                .map(|seed| {
                    scope.spawn({
                        let server = &server;
                        move || random_reads(server, 20, seed)
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(100));
            server.control().timing(false).unwrap();
            // At the model's pace 320 reads would take 4 s.
            for reader in readers {
                let took = reader.join().unwrap();
                in_time(took < Duration::from_secs(2), format_args!("{took:?}"));
            }
        });
        let stats = server.control().stats(false).unwrap();
        assert_eq!(stats.read.requests, 320, "{stats:?}");
        in_time(stats.max_queue_length > 8, format_args!("{stats:?}"));
    });
}

#[test]
fn heads_work_at_the_same_time() {
    if skip("heads_work_at_the_same_time") {
        return;
    }
    undisturbed(|| {
        let rate = |heads: u32| {
            let yaml = format!("{{name: heads{heads}, profile: hdd-7200, heads: {heads}, size_mib: 1024}}");
            let server = Server::start(&yaml);
            let start = Instant::now();
            thread::scope(|scope| {
                for seed in 0..16 {
                    let server = &server;
                    scope.spawn(move || random_reads(server, 20, seed));
                }
            });
            320.0 / start.elapsed().as_secs_f64()
        };
        let (one, four) = (rate(1), rate(4));
        in_time(four > 2.5 * one, format_args!("{one} IOPS with one head, {four} with four"));
    });
}

#[test]
fn a_flash_device_is_as_fast_as_its_profile() {
    if skip("a_flash_device_is_as_fast_as_its_profile") {
        return;
    }
    undisturbed(|| {
        let server = Server::start("{name: ssd, profile: ssd-sata, size_mib: 256}");
        random_reads(&server, 500, 3);
        let stats = server.control().stats(false).unwrap();
        // 15 us command, 29.4 us flash, 52.2 us channel.
        assert!((stats.service.mean_ns / 96_600.0 - 1.0).abs() < 0.02, "{stats:?}");
        in_time(stats.service_error.median_ns < 1_000_000, format_args!("{stats:?}"));
    });
}

#[test]
fn two_servers_do_not_disturb_each_other() {
    if skip("two_servers_do_not_disturb_each_other") {
        return;
    }
    undisturbed(|| {
        let servers = [
            Server::start("{name: first, profile: hdd-7200, size_mib: 512}"),
            Server::start("{name: second, profile: hdd-15k, size_mib: 512}"),
        ];
        assert_ne!(servers[0].device(), servers[1].device());
        thread::scope(|scope| {
            for server in &servers {
                scope.spawn(move || random_reads(server, 100, 4));
            }
        });
        for (server, range) in servers.iter().zip([11e6..15e6, 4.5e6..7e6]) {
            let stats = server.control().stats(false).unwrap();
            assert!(range.contains(&stats.service.mean_ns), "{}: {stats:?}", server.state.spec.name);
            let name = &server.state.spec.name;
            in_time(stats.service_error.median_ns < 1_000_000, format_args!("{name}: {stats:?}"));
        }
    });
}
