"""Sites of a study: database and application server run with each run, and are checked after it."""

import json
import shutil
import socket
from pathlib import Path

import polars as pl
import pytest
from support import weir

STUDY = """\
name: shopped
question: Does a shop sell?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.3
duration_s: 1.5
capture: optional
storage: {{profile: ssd-sata, heads: 1, size_mib: 512}}
classes:
  shoppers:
    workload: tpcw-ordering
    clients: 10
    through: {through}
    with: {{sessions.think.exponential.mean_ms: 40, sessions.begin.staggered.to_ms: 200}}
services:
  shop:
    site: {{benchmark: tpcw, database: postgresql, items: 100, browsers: 1, hot_tables: [item, author]}}
    port: {port}
{front}factors:
  variant:
{variants}
hold:
  filesystem: ext4
  scheduler: none
"""


# It must not keep what no page is twice.
FRONT = "  front: {{service: nginx-proxy, before: shop, port: {port}, settings: {{cache: documents}}}}\n"


def _has(database):
    if database == "mariadb":
        return shutil.which("mariadbd", path="/usr/bin:/usr/sbin") is not None
    return any(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def _has_proxy():
    return shutil.which("nginx", path="/usr/bin:/usr/sbin") is not None


def _study(bench, databases):
    with socket.socket() as free, socket.socket() as another:
        free.bind(("127.0.0.1", 0))
        another.bind(("127.0.0.1", 0))
        port, front = free.getsockname()[1], another.getsockname()[1]
    front = FRONT.format(port=front) if _has_proxy() else ""
    file = bench.folder / "shopped.yml"
    at = "services.shop.site"
    variants = [
        f'    {name}: {{{at}.database: {name}, {at}.settings: {{buffer_mib: "32"}}}}' for name in databases
    ]
    through = "front" if front else "shop"
    file.write_text(STUDY.format(port=port, front=front, through=through, variants="\n".join(variants)))
    return file


def test_a_shop_on_the_file_system_of_a_run(bench):
    """This test will carry out a run with a shop on each database, and have what it kept removed."""
    if not (databases := [name for name in ("postgresql", "mariadb") if _has(name)]):
        pytest.skip("needs postgresql or mariadb")
    # Servers run as users of their own.
    bench.folder.chmod(0o755)
    code, log = bench.play(_study(bench, databases), "--skip-tags", "report")
    assert code == 0, log
    runs = bench.run_folders("shopped")
    assert len(runs) == len(databases)
    keys = []
    for folder in runs.values():
        shop = json.loads((folder / "observed.json").read_text())["sites"]["shop"]
        keys.append(shop["snapshot"])
        _look_at_pages(folder, shop)
        _look_at_verdict(folder, shop)
        _look_at_tables(shop, str(bench.state / "mnt/shop.hot"))
    # Nothing is left but the data for the next run, and these can be removed.
    assert bench.leftovers() == [] and not (bench.state / "mnt/shop.hot").exists()
    kept = [bench.state / "snapshots" / key for key in keys]
    assert len(set(kept)) == len(databases) and all((path / "hot").is_dir() for path in kept)
    assert weir("clean", "--state", bench.state).returncode == 0 and kept[0].exists()
    assert weir("clean", "--snapshots", "--state", bench.state).returncode == 0
    assert not kept[0].exists()


def _look_at_pages(folder, shop):
    pages = pl.read_parquet(folder / "pages.parquet")
    requests = pl.read_parquet(folder / "requests.parquet")
    assert pages["request"].to_list() == requests["request"].to_list() == list(range(len(pages)))
    assert (pages["intended_ns"] == requests["intended_ns"]).all() and set(pages["class"]) == {"shoppers"}
    assert {"HOME", "SHOP"} <= set(pages["page"]) and set(pages["status"]) == {0}
    shoppers = shop["classes"]["shoppers"]
    assert shoppers["answered"] == len(pages.filter(~pl.col("warmup"))) > 0
    assert shoppers["wips"] == pytest.approx(shoppers["answered"] / 1.5)


def _look_at_verdict(folder, shop):
    observed = json.loads((folder / "observed.json").read_text())
    front = ["run.front"] if _has_proxy() else []
    names = [service["name"] for service in observed["services"]]
    assert names == ["run.shop-database", "run.shop-app", *front]
    assert {"driver", "run.shop-database", "run.shop-app"} <= set(observed["cpu"])
    orders = (folder / "logs/shop.orders.log").read_text().splitlines()
    assert shop["acknowledged"] == len(orders) > 0
    rules = {rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]}
    for rule in ("R-PLANNED", "R-ERRORS", "R-SITE", "R-STATE"):
        assert rules[rule]["status"] == "valid", rules[rule]
    assert f"{len(orders)} of {len(orders)} acknowledged writes were found" in rules["R-SITE"]["reason"]


def _look_at_tables(shop, folder):
    """What the database itself says of where they lie."""
    places = dict(shop["hot"])
    assert {"item", "author"} <= set(places) and not {"orders", "customer"} & set(places)
    assert all(place.startswith(folder) for place in places.values())
    if shop["database"] == "postgresql":
        assert {"item_pkey", "ix_item_i_subject"} <= set(places), "indexes lie with their tables"
    assert 0 < shop["hot_bytes"] <= shop["hot_bytes_after"] and shop["data_bytes"] > shop["hot_bytes"]


def test_what_is_wrong_with_a_site_is_named(dry_bench):
    """This test will check studies whose sites and classes do not go together."""
    file = _study(dry_bench, ["postgresql"])
    text = file.read_text()
    through = f"through: {'front' if _has_proxy() else 'shop'}"
    assert weir("check", file).returncode == 0
    for there, instead, said in (
        ("benchmark: tpcw", "benchmark: tpcv", "services.shop.site.benchmark: unknown benchmark `tpcv`"),
        ("database: postgresql,", "database: postgres,", "site.database: unknown database `postgres`"),
        ("[item, author]", "[item, auhtor]", "services.shop.site.hot_tables.1: unknown table `auhtor`"),
        ("items: 100", "scale: 0.1", "services.shop.site.scale: is a field of rubis and rubbos"),
        ("tpcw-ordering", "zipf-web", "classes.shoppers.workload: `zipf-web` is a workload of requests"),
        ("tpcw-ordering", "rubis-default", "which tpcw does not have: use one of tpcw-browsing"),
        ("mean_ms: 40", "mean_ns: 40", "classes.shoppers.with.sessions.think.exponential.mean_ns"),
        ("clients: 10", "clients: 10\n    think_ms: 5", "sessions have think times of their own"),
        (through, "objective: {share: 1}", "use it in a class"),
        ("filesystem: ext4", "filesystem: raw", "services.shop.site: has a database"),
        ("    site:", "    service: nginx\n    site:", "has both `service` and `site`"),
    ):
        assert there in text
        file.write_text(text.replace(there, instead))
        done = weir("check", file)
        assert done.returncode == 2 and said in done.stderr + done.stdout, (instead, done.stderr)
