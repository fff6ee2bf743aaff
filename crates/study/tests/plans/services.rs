//! Tests of classes that go through daemons and of chains of daemons.

use weir_study::Engine;

use crate::support::{each_is_named, plan_text, trial};

const SITE: &str = trial!(
    "\
classes:
  first: {workload: zipf-class0, clients: 10, through: web, think_ms: 0}
  second: {workload: zipf-class1, clients: 3, through: web}
services:
  web: {service: nginx, port: 8080}
factors:
  filesystem: [ext4, tmpfs]
hold: {buffered: true}
"
);

#[test]
fn a_class_goes_through_a_service() {
    let plan = plan_text(SITE).unwrap();
    for run in &plan.runs {
        assert!(run.classes.iter().all(|class| class.engine == Engine::Web));
        let think_ms: Vec<_> = run.classes.iter().map(|class| class.think_ms).collect();
        assert_eq!(think_ms, [Some(0.0), None]);
        assert_eq!(run.services.len(), 1);
    }
}

#[test]
fn a_way_through_a_service_that_cannot_be_is_named() {
    each_is_named(
        SITE,
        &[
            (
                "through: web}",
                "through: wob}",
                "classes.second.through: unknown service `wob`; did you mean `web`?",
            ),
            ("through: web, think", "think", "classes.first.think_ms: needs `through`: name a service"),
            ("think_ms: 0", "think_ms: -1", "classes.first.think_ms: must be from 0 to 1e9"),
            ("think_ms: 0", "priority: rt/0", "classes.first.priority: applies to requests to a disk"),
            (
                "[ext4, tmpfs]",
                "[ext4, raw]",
                "classes.first.through: is web, which serves files, but raw has none",
            ),
            (
                "buffered: true",
                "architecture: partitioned",
                "classes.first.through: is web, as in another class",
            ),
            (
                "port: 8080}",
                "port: 8080}\n  idle: {service: nginx, port: 8081}",
                "services.idle: no class goes",
            ),
        ],
    );
}

const TIERS: &str = trial!(
    "\
classes:
  first: {workload: zipf-class0, clients: 10, through: a-proxy, think_ms: 0}
services:
  a-proxy: {service: nginx-proxy, port: 8081, before: web}
  web: {service: nginx, port: 8080}
factors:
  variant:
    plain: {}
    hot: {services.web.hot_mib: 8}
    limited: {services.web.read_mb_s: 1.5, services.web.memory_mib: 32}
  memory_mib: [64, 96]
hold: {buffered: true, filesystem: ext4}
"
);

#[test]
fn what_is_asked_starts_before_what_asks_it() {
    let plan = plan_text(TIERS).unwrap();
    assert_eq!(plan.runs.len(), 6);
    for run in &plan.runs {
        let names: Vec<&str> = run.services.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["web", "a-proxy"]);
        let chain: Vec<&str> =
            run.services_of(&run.classes[0]).iter().map(|service| service.name.as_str()).collect();
        assert_eq!(chain, ["a-proxy", "web"]);
    }
    let hot: Vec<Option<u64>> = plan.runs.iter().map(|run| run.services[0].hot_mib).collect();
    assert_eq!(hot.iter().filter(|mib| **mib == Some(8)).count(), 2);
}

#[test]
fn tiers_and_limits_that_cannot_be_are_named() {
    each_is_named(
        TIERS,
        &[
            (
                "before: web}",
                "before: wob}",
                "services.a-proxy.before: unknown service `wob`; did you mean `web`?",
            ),
            ("before: web}", "before: a-proxy}", "services.a-proxy.before: is a-proxy, which closes a loop"),
            (
                "port: 8080}",
                "port: 8080, before: a-proxy}",
                "services.web.before: is a-proxy, which closes a loop",
            ),
            (
                "{services.web.hot_mib: 8}",
                "{services.web.hot_mib: 60}",
                "is 60 MiB of the 64 MiB that a run may use",
            ),
            ("services.web.hot_mib", "services.a-proxy.hot_mib", "is set on a service without files"),
            (
                "clients: 10",
                "with: {files.popularity: uniform}, clients: 10",
                "class first requests all files equally often",
            ),
            ("memory_mib: 32}", "memory_mib: 80}", "is 80, but the whole run may use 64 MiB"),
            ("filesystem: ext4", "filesystem: moosefs", "but moosefs has no disks: leave one of the two out"),
            (
                "buffered: true",
                "server_memory_mib: 64",
                "hold.server_memory_mib: applies to servers of a network",
            ),
            (
                "buffered: true",
                "warm_start: true",
                "hold.warm_start: is given, but files that are not `buffered`",
            ),
            (
                "buffered: true",
                "buffered: true, warm_start: true",
                "hold.warm_start: is given, but pages that are read before web starts",
            ),
        ],
    );
}

#[test]
fn a_setting_that_is_more_than_a_value_is_named() {
    let with =
        |settings: &str| SITE.replace("port: 8080}", &format!("port: 8080, settings: {{{settings}}}}}"));
    for (settings, said) in [
        (
            r#"sendfile: "on; server { listen 0.0.0.0:8080; }""#,
            "trial.yml:13: services.web.settings.sendfile: is `on; server { listen 0.0.0.0:8080; }`; it must be on or off",
        ),
        (
            "load_module: x.so",
            "services.web.settings.load_module: unknown setting `load_module` (known: connections, ",
        ),
        (
            r#"wrokers: "1""#,
            "services.web.settings.wrokers: unknown setting `wrokers`; did you mean `workers`?",
        ),
        (r#"workers: "0""#, "services.web.settings.workers: is `0`; it must be a whole number from 1 to 512"),
        (r#"address: "0.0.0.0""#, "services.web.settings.address: unknown setting `address`"),
        (r#"run: /etc"#, "services.web.settings.run: unknown setting `run`"),
        (r#"open_file_cache: "max=10; x""#, "services.web.settings.open_file_cache: is `max=10; x`"),
    ] {
        let found = plan_text(&with(settings)).unwrap_err();
        assert!(found.contains(said), "{settings}: {found}");
    }
    for settings in [r#"sendfile: "off""#, r#"open_file_cache: "max=10 inactive=20s""#, r#"workers: "512""#] {
        plan_text(&with(settings)).unwrap_or_else(|found| panic!("{settings}: {found}"));
    }
}

#[test]
fn a_variant_sets_what_a_service_takes_and_nothing_else() {
    let with = |level: &str| TIERS.replace("    plain: {}\n", &format!("    plain: {{{level}}}\n"));
    let plan = plan_text(&with(r#"services.web.settings.workers: "4""#)).unwrap();
    let set =
        plan.runs.iter().filter(|run| run.services.iter().any(|one| one.settings.contains_key("workers")));
    assert_eq!(set.count(), 2);
    for (level, said) in [
        (
            r#"services.web.settings.workers: "4; x""#,
            "factors.variant.plain.services.web.settings.workers: is `4; x`",
        ),
        (r#"services.web.settings.load_module: "x""#, "unknown setting `load_module`"),
        ("services.web.service: ngnix", "did you mean `nginx`?"),
    ] {
        let found = plan_text(&with(level)).unwrap_err();
        assert!(found.contains(said), "{level}: {found}");
    }
}

#[test]
fn a_study_names_no_file_of_the_host_and_no_service_that_is_unknown() {
    let guest = SITE.replace(
        "{service: nginx, port: 8080}",
        "{service: guest, port: 8080, settings: {image: /etc/shadow}}",
    );
    let found = plan_text(&guest).unwrap_err();
    assert!(found.contains("services.web.settings.image: names a file of the host"), "{found}");
    let found = plan_text(&SITE.replace("service: nginx", "service: ../nginx")).unwrap_err();
    assert!(found.contains("services.web.service: unknown service `../nginx`"), "{found}");
}

#[test]
fn names_that_are_more_than_a_name_are_refused() {
    for name in ["../x", "\"a b\"", "-rf", ".x", "\"$(id)\"", "\"a;b\""] {
        let class = SITE.replace("  first: {", &format!("  {name}: {{"));
        assert!(plan_text(&class).unwrap_err().contains("use 1 to 40 letters"), "{name}");
        let service = SITE
            .replace("  web: {", &format!("  {name}: {{"))
            .replace("through: web", &format!("through: {name}"));
        assert!(plan_text(&service).unwrap_err().contains("use 1 to 40 letters"), "{name}");
    }
}
