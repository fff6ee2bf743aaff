"""Service times of a modelled disk for given requests, one zone at a time.

Requests go through `weir simulate` as a recorded trace: one disk, first come first served. The disk is the
profile's with one zone only, whose cylinders are those of the zone and as many as a file leaves free of a
device.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import yaml

from papers.clockwise.source import SECTOR_BYTES
from weir.binary_cache import BinaryCache

PROFILES = Path("testbeds/disks")
#: A file fills at most so much of a device.
FILLED = 0.66
#: Time between two requests, beside a random part of a revolution: longer than any takes.
GAP_MS = 500.0
#: A run has at least this length, in s; requests beyond the trace are left out.
SPARE_S = 1.0


@dataclass(frozen=True)
class Request:
    """A request of one zone: whole sectors, counted from the zone's first one."""

    start: int
    sectors: int
    is_write: bool = False


@dataclass(frozen=True)
class Drive:
    """A modelled disk.

    Attributes:
        profile: its name.
        zones: sectors per track and cylinders by zone.
        heads: tracks of a cylinder.
        revolution_ms: a revolution.
        fields: the profile's fields.
    """

    profile: str
    zones: tuple[tuple[int, int], ...]
    heads: int
    revolution_ms: float
    fields: dict[str, object] = field(repr=False)

    @classmethod
    def load(cls, binary: BinaryCache, profile: str) -> "Drive":
        """The drive of a profile that gives its cylinders outright."""
        fields = yaml.safe_load((binary.root / PROFILES / f"{profile}.yml").read_text(encoding="utf-8"))
        zones = tuple((int(z["sectors_per_track"]), int(z["cylinders"])) for z in fields["zones"])
        return cls(profile, zones, int(fields["heads"]), 60_000 / float(fields["rpm"]), fields)

    def track(self, zone: int) -> int:
        """Sectors of a track."""
        return self.zones[zone][0]

    def sectors(self, zone: int) -> int:
        """Sectors of a zone."""
        per_track, cylinders = self.zones[zone]
        return per_track * cylinders * self.heads

    def seek_ms(self, distance_cylinders: int) -> float:
        """Time of a seek, straight between the profile's points."""
        points = self.fields["seek_points"]
        at = [p["distance_cylinders"] for p in points]
        return float(np.interp(distance_cylinders, at, [p["ms"] for p in points]))


def served_ms(
    binary: BinaryCache,
    drive: Drive,
    zone: int,
    requests: Sequence[Request],
    *,
    seed: int = 1,
    changes: dict[str, object] | None = None,
) -> np.ndarray:
    """Service time of each request in ms, with the platter at a random angle at its start.

    Args:
        binary: the binary.
        drive: the disk.
        zone: which of its zones.
        requests: in their order, within the zone.
        seed: of the angles.
        changes: fields of the profile that are other than the drive's.

    Raises:
        InputError: the binary refuses them.
    """  # fmt: skip
    table = _table(requests, drive.revolution_ms, seed)
    profile = _profile(drive, zone, changes or {})
    key = ["disk-times", json.dumps(profile, sort_keys=True), table]
    path = binary.made(key, ".npy", lambda out: np.save(out, _simulated(binary, drive, zone, profile, table)))
    found = np.load(path)
    assert len(found) >= len(requests), "a request has got lost"
    return found[: len(requests)]


def _table(requests: Sequence[Request], revolution_ms: float, seed: int) -> str:
    angles = np.random.default_rng(seed).uniform(0, revolution_ms, len(requests))
    lines = ["time,op,offset,size"]
    for at, (request, angle) in enumerate(zip(requests, angles, strict=True)):
        time_s = (at * GAP_MS + angle) / 1e3
        kind = "W" if request.is_write else "R"
        lines.append(f"{time_s:.9f},{kind},{request.start * SECTOR_BYTES},{request.sectors * SECTOR_BYTES}")
    return "\n".join(lines) + "\n"


def _profile(drive: Drive, zone: int, changes: dict[str, object]) -> dict[str, object]:
    _, cylinders = drive.zones[zone]
    own = drive.fields["zones"][zone] | {"cylinders": int(cylinders / FILLED) + 2}
    # Distances beyond the smaller disk's stroke have no place on it.
    return drive.fields | {"zones": [own]} | changes


def _simulated(
    binary: BinaryCache, drive: Drive, zone: int, profile: dict[str, object], table: str
) -> np.ndarray:
    with tempfile.TemporaryDirectory(dir=binary.cache, prefix=".times-") as name:
        folder = Path(name)
        (folder / "trace.csv").write_text(table, encoding="utf-8")
        (folder / "drive.yml").write_text(json.dumps(profile), encoding="utf-8")
        last_s = float(table.rstrip().rsplit("\n", 1)[-1].partition(",")[0])
        document = _study(folder, drive, zone, profile, last_s)
        (folder / "times.yml").write_text(json.dumps(document), encoding="utf-8")
        binary.output("simulate", folder / "times.yml", "--out", folder / "out")
        (found,) = (folder / "out").glob("times/*/requests.parquet")
        rows = pl.read_parquet(found, columns=["request", "served_ns", "completed_ns"]).sort("request")
        return ((rows["completed_ns"] - rows["served_ns"]) / 1e6).to_numpy()


def _study(
    folder: Path, drive: Drive, zone: int, profile: dict[str, object], last_s: float
) -> dict[str, object]:
    (own,) = profile["zones"]
    per_track = int(own["sectors_per_track"]) - int(own.get("spare_sectors_per_track", 0))
    whole = per_track * int(own["cylinders"]) * drive.heads * SECTOR_BYTES
    spare = int(own.get("spare_tracks", 0)) * per_track * SECTOR_BYTES
    spare += whole // 50 if own.get("spare_sectors_per_group") else 0
    columns = {"header": "yes", "time": "time", "op": "op", "reads": "R", "offset": "offset", "size": "size"}
    trace = {"path": str(folder / "trace.csv"), "format": "csv", "options": columns}
    return {
        "name": "times",
        "question": "How long do these requests take?",
        "testbed": "simulator",
        "seed": 1,
        "repetitions": 1,
        "warmup_s": 0,
        "duration_s": last_s + SPARE_S,
        "records": "requests",
        "storage": {
            "profile": str(folder / "drive.yml"), "heads": 1, "size_mib": (whole - spare) // 2**20,
            "placement": "packed",
        },
        "classes": {
            "asked": {
                "workload": "random-4k",
                "clients": 1,
                "with": {
                    "arrivals": {"recorded": trace},
                    "files": {"count": 1, "size": {"fixed": {"bytes": drive.sectors(zone) * SECTOR_BYTES}}},
                    "sizes": "recorded",
                    "access": "recorded",
                    "alignment_bytes": SECTOR_BYTES,
                },
            }
        },
        "factors": {"scheduler": ["fcfs"]},
    }  # fmt: skip
