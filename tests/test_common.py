"""The common study, made small: what its shipped settings let in and keep, on both disks."""

import pytest
import yaml
from support import ROOT, weir

from papers.schedulers_compared.results import table, with_all
from papers.schedulers_compared.tables import checks
from weir.load import load_study

#: Of each study: the streams that can be promised, and more than a disk bears.
PROMISED = {"common": (20, 80), "common-atlas": (12, 44)}


@pytest.fixture(scope="module", params=PROMISED)
def small(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    study = yaml.safe_load((ROOT / f"studies/common/{request.param}.yml").read_text())
    promised, overload = PROMISED[request.param]
    study |= {"repetitions": 2, "warmup_s": 2, "duration_s": 20}
    study["factors"]["client_counts"]["video"] = [promised, overload]
    file = folder / f"{request.param}.yml"
    file.write_text(yaml.safe_dump(study))
    done = weir("simulate", file, "--out", folder / "results")
    assert done.returncode == 0, done.stderr
    return request.param, table(load_study(folder / "results" / request.param))


def test_what_must_hold_holds(small):
    _, rows = small
    assert checks(rows)["holds"].to_list() == ["yes"] * 4


def test_streams_are_promised_and_kept_by_deltal_alone(small):
    name, rows = small
    promised, overload = PROMISED[name]
    of = {key: part for (key,), part in with_all(rows).group_by("scheduler")}
    for contracts in ("deltal", "lst", "edf-background"):
        assert set(of[contracts]["promised"]) == {promised}
    late = {key: of[key].filter(of[key]["asked"] == overload)["promised_late"].sum() for key in of}
    assert late["deltal"] == 0
    assert late["lst"] > 0
    # All bear what all let in.
    assert all(
        part.filter(part["asked"] == promised)["late_pct"].mean() == 0
        for key, part in of.items()
        if key != "fcfs"
    )


def test_one_stream_more_is_refused(tmp_path):
    text = (ROOT / "studies/common/common.yml").read_text().replace("rejected=best-effort ", "")
    study = yaml.safe_load(text) | {"repetitions": 1, "warmup_s": 0, "duration_s": 1}
    study["factors"] = {
        "scheduler": [one for one in study["factors"]["scheduler"] if one.startswith("deltal")],
        "client_counts": {"text": [1], "video": [21]},
    }
    file = tmp_path / "common.yml"
    file.write_text(yaml.safe_dump(study))
    done = weir("simulate", file, "--out", tmp_path / "results")
    assert done.returncode != 0
    assert "leave a slack of 317.5 ms, below least_slack_ms=350" in done.stdout + done.stderr
