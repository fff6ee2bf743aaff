"""A job of fio as a workload and a class of a study, and what is lost of it.

Each option of a job is `expressed`, has `no_effect` on the requests, or is `lost`, with what weir does
instead. Where the default of fio has no counterpart, the option is reported as lost although it is absent.
"""

import re
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any

from weir.imported.fio_jobs import Job, Option, flag, size_bytes, time_us, whole
from weir.imported.fio_options import LOST_UNLESS, NO_EFFECT_REASON

EXPRESSED, NO_EFFECT, LOST = "expressed", "no_effect", "lost"
#: Most request sizes of a closed loop.
MOST_SIZES = 64
#: Largest request and file of a workload, and its alignment.
LARGEST_REQUEST_BYTES = 16 << 20
LARGEST_FILE_BYTES = 1 << 50
ALIGNMENT_BYTES = 512
#: Longest warm-up, measured interval and start of a class, and, for the importer, longest pause: a day.
LONGEST_US = 86_400 * 10**6
#: The kernel's schedulers (`weir list schedulers`).
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")

#: Engines that send one request at a time, so that `iodepth` is 1.
_SYNCHRONOUS = ("psync", "sync", "pvsync", "pvsync2", "vsync")
_ASYNCHRONOUS = ("libaio", "io_uring", "posixaio", "solarisaio", "windowsaio")
_MODES = {
    "read": ("sequential", 1.0), "write": ("sequential", 0.0), "rw": ("sequential", None),
    "readwrite": ("sequential", None), "randread": ("random", 1.0), "randwrite": ("random", 0.0),
    "randrw": ("random", None),
}  # fmt: skip
_PRIORITIES = {0: "be", 1: "rt", 2: "be", 3: "idle"}


@dataclass(frozen=True)
class Fate:
    """What becomes of one option.

    Attributes:
        option: the option.
        value: its value; None where there is none, or the option is absent.
        line: its line; that of the section where the option is absent.
        file: the file of the line.
        fate: EXPRESSED, NO_EFFECT or LOST.
        text: the fields of weir, why there is no effect, or what weir does instead.
    """

    option: str
    value: str | None
    line: int
    file: str
    fate: str
    text: str


class NotExpressedError(Exception):
    """No workload can be made of a job."""


@dataclass
class Imported:
    """One job as a workload and a class.

    Attributes:
        job: the job.
        fates: what becomes of each option.
        problem: why there is no workload; empty if there is one.
        recipe: fields of the workload.
        clients: number of clients.
        direct: whether the page cache is bypassed.
        is_device: whether the job is on a block device without file system.
        filename: the files that the job names.
        priority: I/O priority; None if the job sets none.
        scheduler: scheduler that the job sets; None if it sets none.
        starts_us: from the start of the group to that of the job.
        ends_us: from the start of the group to the end of the job; None if it ends with its data.
        warmup_us: its ramp time.
        begins_group: whether it waits for the jobs before it.
    """

    job: Job
    fates: list[Fate] = field(default_factory=list)
    problem: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)
    clients: int = 1
    direct: bool = False
    is_device: bool = False
    filename: str = ""
    priority: str | None = None
    scheduler: str | None = None
    starts_us: int = 0
    ends_us: int | None = None
    warmup_us: int = 0
    begins_group: bool = False

    @property
    def lost(self) -> list[Fate]:
        """The options that are lost."""
        return [one for one in self.fates if one.fate == LOST]


def workload(job: Job, target_bytes: int | None = None) -> Imported:
    """Makes a workload of a job.

    Args:
        job: the job.
        target_bytes: size of the file or device that it is on, for `size=10%` and jobs without size.

    Raises:
        InputError: an option has a value that fio does not read.
    """
    made = _Mapper(job, target_bytes)
    try:
        made.map()
    except NotExpressedError as error:
        made.result.problem = str(error)
    made.rest()
    return made.result


class _Mapper:
    """Takes the options of one job one by one; what remains is of the tables above."""

    def __init__(self, job: Job, target_bytes: int | None) -> None:
        self.job = job
        self.target_bytes = target_bytes
        self.result = Imported(job)
        self.left = dict(job.options)
        base = job.options.get("kb_base")
        self.kb_base = 1000 if base and base.value in ("1000", "kb=1000") else 1024

    # ---- what is found of an option

    def note(self, option: Option, fate: str, text: str) -> None:
        self.left.pop(option.name, None)
        found = Fate(option.name, option.value, option.line, str(option.file), fate, text)
        self.result.fates.append(found)

    def absent(self, name: str, text: str) -> None:
        """Reports that the default of an absent option is lost."""
        file = next((str(one.file) for one in self.job.options.values() if not one.is_global), "")
        self.result.fates.append(Fate(name, None, self.job.line, file, LOST, text))

    def get(self, name: str) -> Option | None:
        return self.job.options.get(name)

    def is_on(self, name: str) -> bool:
        option = self.get(name)
        return option is not None and flag(option)

    def whole(self, name: str, default: int, low: int = 0, high: int = (1 << 31) - 1) -> int:
        option = self.get(name)
        return default if option is None else whole(option, low, high)

    def time_us(self, name: str, unit_us: int) -> int | None:
        option = self.get(name)
        return None if option is None else time_us(option, option.value or "", unit_us)

    def at_most_a_day(self, name: str, unit_us: int) -> tuple[int, str]:
        """A time in microseconds, 0 if absent, cut to what weir accepts, and the fate that this means."""
        found = self.time_us(name, unit_us) or 0
        return min(found, LONGEST_US), LOST if found > LONGEST_US else EXPRESSED

    # ---- the mapping

    def map(self) -> None:
        # First: jobs of which no workload can be made begin a group too.
        self.group()
        if self.get("read_iolog"):
            raise NotExpressedError(
                "it replays a log (`read_iolog`): use `weir trace convert LOG --to parquet --out FILE` and "
                "`weir replay FILE`"
            )
        self.engine()
        self.mode()
        self.sizes()
        self.target()
        self.space()
        self.pace()
        self.course()
        self.priority()

    def group(self) -> None:
        if wall := self.get("stonewall"):
            self.result.begins_group = flag(wall)
            self.note(wall, EXPRESSED, "the jobs from here on are a study of their own")

    def engine(self) -> None:
        option = self.get("ioengine")
        name = (option.value or "") if option else "psync"
        buffered, direct = self.get("buffered"), self.get("direct")
        last = max((one for one in (direct, buffered) if one), key=lambda one: self.order(one), default=None)
        self.result.direct = last is not None and flag(last) == (last.name == "direct")
        for one in (direct, buffered):
            if one:
                self.note(one, EXPRESSED, f"hold.buffered: {str(not self.result.direct).lower()}")
        depth = self.get("iodepth")
        asked = self.whole("iodepth", 1, 1)
        if name in _SYNCHRONOUS:
            sent = 1
            if depth:
                text = f"engine {name} sends one request at a time; arrivals.closed.depth: 1"
                self.note(depth, NO_EFFECT if asked > 1 else EXPRESSED, text)
        elif name in _ASYNCHRONOUS:
            sent = asked
            if depth:
                self.note(depth, EXPRESSED, f"arrivals.closed.depth: {sent}")
        else:
            raise NotExpressedError(f"`ioengine={name}` sends no reads and writes to a file or block device")
        if sent > 4096:
            raise NotExpressedError(f"`iodepth={sent}` is more than 4096, the largest depth of a closed loop")
        if option:
            self.note(option, EXPRESSED, "requests are sent by io_uring")
            if name == "libaio" and not self.result.direct:
                self.result.fates[-1] = Fate(
                    "ioengine", name, option.line, str(option.file), LOST,
                    "libaio waits for each buffered request; io_uring keeps the whole depth outstanding",
                )  # fmt: skip
        self.result.recipe["arrivals"] = {"closed": {"depth": sent}}

    def order(self, option: Option) -> int:
        return list(self.job.options).index(option.name)

    def mode(self) -> None:
        option = self.get("rw")
        text = (option.value or "") if option else "read"
        mode, _, postfix = text.partition(":")
        mode, postfix = mode.strip().lower(), postfix.strip()
        if mode not in _MODES:
            if option and mode in ("trim", "randtrim", "trimwrite", "randtrimwrite"):
                raise NotExpressedError(f"`rw={mode}` trims; a workload reads and writes")
            raise (option or Option("rw", text, self.here(), 0, False)).error(
                "has no such mode", "correct it"
            )
        access, share = _MODES[mode]
        mix_read, mix_write = self.get("rwmixread"), self.get("rwmixwrite")
        mix = max((one for one in (mix_read, mix_write) if one), key=self.order, default=None)
        if share is None:
            per_cent = 50 if mix is None else whole(mix, 0, 100)
            share = (per_cent if mix is None or mix.name == "rwmixread" else 100 - per_cent) / 100
        for one in (mix_read, mix_write):
            if one is not None and one is mix and _MODES[mode][1] is None:
                self.note(one, EXPRESSED, f"read_share: {share}")
            elif one is not None:
                self.note(one, NO_EFFECT, "the job does not mix reads and writes, or a later option holds")
        per_cent_random = self.get("percentage_random")
        if per_cent_random:
            parts = {part.strip() for part in (per_cent_random.value or "").split(",")}
            if access == "random" and parts == {"0"}:
                access = "sequential"
                self.note(per_cent_random, EXPRESSED, "access: sequential")
            elif access == "random" and parts != {"100"}:
                self.note(per_cent_random, LOST, "all requests are at random places")
            else:
                self.note(per_cent_random, NO_EFFECT, f"access is {access}")
        if option and postfix and postfix != "1":
            text = (
                f"each request is at a random place, not each {postfix}th"
                if access == "random"
                else f"requests follow each other without the step of {postfix} bytes"
            )
            self.note(option, LOST, f"access: {access}, read_share: {share}, but {text}")
        elif option:
            self.note(option, EXPRESSED, f"access: {access}, read_share: {share}")
        self.result.recipe |= {"access": access, "read_share": share}
        self.distribution(access)

    def distribution(self, access: str) -> None:
        option = self.get("random_distribution")
        is_uniform = option is None or (option.value or "").split(":")[0] in ("random", "")
        if option and (is_uniform or access != "random"):
            self.note(option, EXPRESSED if is_uniform else NO_EFFECT, f"access: {access}")
        elif option:
            text = "places are uniform over the file; popularity is of whole files, and a closed loop has one"
            self.note(option, LOST, text)
        map_off = self.get("norandommap")
        if map_off:
            self.note(map_off, EXPRESSED if flag(map_off) else LOST, "random requests are independent draws")
        elif access == "random" and is_uniform:
            text = "fio requests each block once before any again; weir draws each request independently"
            self.absent("norandommap", text)

    def sizes(self) -> None:
        share = self.result.recipe["read_share"]
        used = [direction for direction, part in ((0, share), (1, 1 - share)) if part > 0]
        split, between, plain = self.get("bssplit"), self.get("bsrange"), self.get("bs")
        named = {one.name: self.of_option(one) for one in (plain, between, split) if one}
        # A split replaces the other two; of them the later one holds.
        chosen = split or max((one for one in (plain, between) if one), key=self.order, default=None)
        by_direction = named[chosen.name] if chosen else [[(4096, 100)]] * 2
        sizes = by_direction[used[0]]
        is_one = all(by_direction[direction] == sizes for direction in used)
        for one in (plain, between, split):
            if one is None:
                continue
            if one is not chosen:
                self.note(one, NO_EFFECT, f"`{chosen.name if chosen else ''}` holds")
            elif not is_one:
                self.note(
                    one, LOST, "writes have the sizes of reads: a workload has one distribution of sizes"
                )
            else:
                self.note(one, EXPRESSED, f"sizes: {_in_words(sizes)}")
        align = self.get("ba")
        smallest = min(size for size, _ in sizes)
        if align:
            found = size_bytes(align, (align.value or "").split(",")[0], self.kb_base)
            same = found in (0, smallest)
            self.note(align, EXPRESSED if same else LOST, f"offsets are multiples of {smallest} bytes")
        if len(sizes) > MOST_SIZES:
            raise NotExpressedError(
                f"it has {len(sizes)} request sizes, a closed loop has at most {MOST_SIZES}"
            )
        for size, _ in sizes:
            if size % ALIGNMENT_BYTES or not 0 < size <= LARGEST_REQUEST_BYTES:
                problem = f"requests of {size} bytes are no multiple of 512 bytes up to 16 MiB"
                raise NotExpressedError(problem)
            if size % smallest:
                raise NotExpressedError(f"{size} bytes are no multiple of the smallest size, {smallest}")
        self.result.recipe["sizes"] = {"drawn": _distribution(sizes)}
        if any(size % 4096 for size, _ in sizes):
            self.result.recipe["alignment_bytes"] = 512

    def of_option(self, option: Option) -> list[list[tuple[int, int]]]:
        """Sizes of reads and of writes, each with its share in per cent."""
        parts = (option.value or "").split(",")
        if len(parts) > 3:
            raise option.error("has more than three parts", "give read, write and trim")
        parse = {"bs": self.fixed, "bsrange": self.between, "bssplit": self.split}[option.name]
        read = parse(option, parts[0]) if parts[0].strip() else [(4096, 100)]
        if len(parts) == 1:
            return [read, read]
        return [read, parse(option, parts[1]) if parts[1].strip() else [(4096, 100)]]

    def fixed(self, option: Option, text: str) -> list[tuple[int, int]]:
        return [(size_bytes(option, text, self.kb_base), 100)]

    def between(self, option: Option, text: str) -> list[tuple[int, int]]:
        """Sizes as fio draws them: multiples of the smallest up to the largest, all equally often."""
        low_text, dash, high_text = text.partition("-")
        if not dash:
            raise option.error(f"has `{text}`, no range", "write MIN-MAX, such as 1k-4k")
        low, high = (size_bytes(option, part, self.kb_base) for part in (low_text, high_text))
        low, high = min(low, high), max(low, high)
        if low == high:
            return [(low, 100)]
        if low == 0 or high % low or 100 % (high // low):
            raise NotExpressedError(
                f"`{option.name}={option.value}` has {high // max(low, 1)} sizes; shares of a closed loop "
                "are whole per cents: use 2, 4, 5, 10, 20, 25 or 50 multiples of the smallest, or bssplit"
            )
        count = high // low
        return [(low * (at + 1), 100 // count) for at in range(count)]

    def split(self, option: Option, text: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int | None]] = []
        for part in text.split(":"):
            size_text, slash, share_text = (word.strip() for word in part.partition("/"))
            if not size_text:
                continue
            if slash and share_text and not re.fullmatch("[0-9]{1,3}", share_text):
                raise option.error(
                    f"has the share `{share_text}`", "write whole per cents, such as 4k/60:64k/40"
                )
            share = min(int(share_text), 100) if slash and share_text else None
            found.append((size_bytes(option, size_text, self.kb_base), share))
        given = sum(share or 0 for _, share in found)
        missing = sum(share is None for _, share in found)
        if not found or given > 100 or (given < 100 and not missing):
            raise option.error(f"has shares of {given} % together", "make them 100 %")
        rest = (100 - given) // missing if missing else 0
        sizes = [(size, rest if share is None else share) for size, share in found]
        kept = [(size, share) for size, share in sizes if share > 0]
        if sum(share for _, share in kept) != 100:
            raise NotExpressedError(
                f"the shares of `{option.name}={option.value}` do not divide into whole per cents"
            )
        return kept

    def target(self) -> None:
        filename, directory = self.get("filename"), self.get("directory")
        self.result.filename = (filename.value or "") if filename else ""
        files = [one for one in re.split(r"(?<!\\):", self.result.filename) if one]
        self.result.is_device = bool(files) and all(one.startswith("/dev/") for one in files)
        where = "hold.filesystem: raw" if self.result.is_device else "hold.filesystem"
        text = f"{where}; the study's disks take its place (`storage`, or the inventory)"
        if filename:
            several = len(files) > 1
            self.note(filename, LOST if several else EXPRESSED, "one file for all" if several else text)
        if directory:
            self.note(directory, EXPRESSED, text)
        for name in ("filename_format", "unique_filename"):
            if one := self.get(name):
                self.note(one, NO_EFFECT, "weir names its files itself")
        nrfiles = self.get("nrfiles")
        if nrfiles:
            one_file = whole(nrfiles, 1) == 1
            text = "files.count: 1" if one_file else "a closed loop has one file, as large as all of them"
            self.note(nrfiles, EXPRESSED if one_file else LOST, text)

    def space(self) -> None:
        """Sets the size of the file and the number of clients."""
        recipe = self.result.recipe
        clients = self.whole("numjobs", 1, 1, 4096)
        self.result.clients = clients
        size = self.size()
        sequential = recipe["access"] == "sequential"
        step_option = self.get("offset_increment")
        step = self.amount(step_option) if step_option else 0
        offset = self.get("offset")
        if offset:
            first = self.amount(offset)
            text = "the file of the class begins at offset 0"
            self.note(offset, LOST if first else EXPRESSED, text)
        own_files = not self.result.filename and clients > 1
        total = size
        numjobs = self.get("numjobs")
        text = f"clients: {clients}"
        if numjobs and sequential and clients > 1 and (own_files or step == size):
            total = size * clients
            self.note(numjobs, EXPRESSED, f"{text}, each in a part of its own of one file of {total} bytes")
        elif numjobs and not sequential and own_files:
            total = size * clients
            self.note(
                numjobs, LOST, f"{text}, but all are over one file of {total} bytes, not each over its own"
            )
        elif numjobs and sequential and clients > 1:
            self.note(
                numjobs, LOST, f"{text}, but each has a part of the file; in fio all begin at the same place"
            )
        elif numjobs:
            self.note(numjobs, EXPRESSED, text)
        if step_option:
            fits = step == 0 or clients == 1 or (sequential and step == size)
            self.note(
                step_option, EXPRESSED if fits else LOST, "clients of random access share the whole file"
            )
        largest = max(bytes_ for bytes_, _ in sizes_of(recipe))
        if total < largest * (clients if sequential else 1) or total > LARGEST_FILE_BYTES:
            raise NotExpressedError(
                f"a file of {total} bytes holds no request of each client, or is above 1 PiB"
            )
        recipe["files"] = {"count": 1, "size": {"fixed": {"bytes": total}}}

    def size(self) -> int:
        option, per_file = self.get("size"), self.get("filesize")
        if per_file:
            self.note(
                per_file, LOST if "-" in (per_file.value or "") else NO_EFFECT, "`size` is the size of all"
            )
        if option:
            found = self.amount(option)
            self.note(
                option, EXPRESSED, f"files.size.fixed.bytes: {found}, times clients with files of their own"
            )
            return found
        if per_file and "-" not in (per_file.value or ""):
            nrfiles = self.whole("nrfiles", 1, 1)
            return self.amount(per_file) * nrfiles
        if self.target_bytes is None:
            raise NotExpressedError(
                "it has no `size`: fio takes that of the file or device. Give --target-size SIZE"
            )
        return self.target_bytes

    def amount(self, option: Option) -> int:
        text = (option.value or "").strip()
        if re.fullmatch(r"[0-9]{1,3}%", text):
            if self.target_bytes is None:
                problem = f"`{option.name}={text}` is of the size of the file or device"
                raise NotExpressedError(f"{problem}. Give --target-size SIZE")
            return self.target_bytes * min(int(text[:-1]), 100) // 100 // 4096 * 4096
        if re.fullmatch(r"[0-9]+z", text):
            raise NotExpressedError(f"`{option.name}={text}` counts zones of a zoned device")
        return size_bytes(option, text, self.kb_base)

    def pace(self) -> None:
        closed = self.result.recipe["arrivals"]["closed"]
        think = self.get("thinktime")
        if think:
            pause_us, fate = self.at_most_a_day("thinktime", 1)
            if pause_us:
                closed["think_us"] = pause_us
            self.note(think, fate, f"arrivals.closed.think_us: {pause_us}")
        share = self.result.recipe["read_share"]
        sizes = sizes_of(self.result.recipe)
        rates = [one for one in (self.get("rate"), self.get("rate_iops")) if one]
        for option in rates:
            # Reads, then writes; one value is for both.
            parts = [part.strip() for part in (option.value or "").split(",")]
            reads, writes = (
                size_bytes(option, text, self.kb_base) if text else 0 for text in (parts * 2)[:2]
            )
            amount = (reads if share > 0 else 0) + (writes if share < 1 else 0)
            per_s = amount / sizes[0][0] if option.name == "rate" else float(amount)
            if amount == 0:
                self.note(option, NO_EFFECT, "the rate of what the job does is not limited")
            elif 0 < share < 1 and not isclose(reads, share * amount):
                self.note(
                    option, LOST, "the rate is not limited: weir limits all requests of a client together"
                )
            elif option.name == "rate" and len(sizes) > 1:
                self.note(option, LOST, "the rate is not limited: weir limits requests, not bytes")
            elif not isclose(per_s, round(per_s)) or not 1 <= per_s <= 1e6:
                self.note(option, LOST, f"the rate is not limited: {per_s:g} per second is no whole number")
            elif len(rates) > 1:
                self.note(option, LOST, "the rate is not limited: `rate` and `rate_iops` are both given")
            else:
                closed["rate_per_s"] = round(per_s)
                self.note(option, EXPRESSED, f"arrivals.closed.rate_per_s: {round(per_s)}")

    def course(self) -> None:
        """Sets when the job begins and ends."""
        closed = self.result.recipe["arrivals"]["closed"]
        delay, ramp, runtime = self.get("startdelay"), self.get("ramp_time"), self.get("runtime")
        delay_us = 0
        if delay and "-" in (delay.value or ""):
            self.note(delay, LOST, "all clients begin at once")
        elif delay:
            delay_us, fate = self.at_most_a_day("startdelay", 10**6)
            if delay_us:
                closed["start_s"] = delay_us / 1e6
            self.note(delay, fate, f"arrivals.closed.start_s: {delay_us / 1e6:g}")
        ramp_us, fate = self.at_most_a_day("ramp_time", 10**6)
        if ramp:
            text = f"warmup_s: {ramp_us / 1e6:g}"
            late = delay_us > 0 and ramp_us > 0
            self.note(ramp, LOST if late else fate, text + (", from the start of the run" if late else ""))
        self.result.starts_us, self.result.warmup_us = delay_us, ramp_us
        runtime_us = self.time_us("runtime", 10**6) or 0
        time_based = self.get("time_based")
        is_time_based = self.is_on("time_based") and runtime_us > 0
        if runtime_us:
            self.result.ends_us = delay_us + ramp_us + runtime_us
        if runtime:
            self.note(runtime, EXPRESSED, f"duration_s: {runtime_us / 1e6:g}")
        if time_based and is_time_based:
            self.note(time_based, EXPRESSED, "requests go on for the whole run")
        elif time_based:
            self.note(time_based, NO_EFFECT, "fio ignores it without `runtime`")
        if not is_time_based:
            absent = "time_based" if runtime_us else "runtime, time_based"
            self.absent(
                absent, "fio ends the job when `size` bytes are done; weir goes on to the end of the run"
            )
        for name in ("loops", "io_size"):
            if one := self.get(name):
                default = name == "loops" and self.whole("loops", 1) == 1
                text = "requests go on for the whole run"
                self.note(one, NO_EFFECT if default or is_time_based else LOST, text)

    def priority(self) -> None:
        level, of_class = self.get("prio"), self.get("prioclass")
        if level or of_class:
            number = self.whole("prioclass", 2, 0, 3)
            name = _PRIORITIES[number]
            own = self.whole("prio", 4 if number == 0 else 0, 0, 7)
            self.result.priority = name if name == "idle" else f"{name}/{own}"
        for one in (level, of_class):
            if one:
                self.note(one, EXPRESSED, f"priority: {self.result.priority}")
        if scheduler := self.get("ioscheduler"):
            if scheduler.value in SCHEDULERS:
                self.result.scheduler = scheduler.value
                self.note(scheduler, EXPRESSED, f"factors.scheduler: [{scheduler.value}]")
            else:
                self.note(scheduler, LOST, f"no scheduler of this Linux: one of {', '.join(SCHEDULERS)}")
        if description := self.get("description"):
            self.note(description, EXPRESSED, "description")

    def rest(self) -> None:
        """Judges the options that nothing above took."""
        for option in list(self.left.values()):
            if reason := NO_EFFECT_REASON.get(option.name):
                self.note(option, NO_EFFECT, reason)
            elif option.name in LOST_UNLESS:
                neutral, text = LOST_UNLESS[option.name]
                same = (option.value if option.value is not None else "1") in neutral
                self.note(option, NO_EFFECT if same else LOST, "its value changes nothing" if same else text)
            elif option.name.startswith(("verify_", "trim_")) or option.name in ("do_verify", "verifysort"):
                has = (self.get(option.name.split("_")[0]) or self.get("verify")) is not None
                self.note(option, LOST if has else NO_EFFECT, "nothing is verified or trimmed")
            elif self.result.problem:
                self.note(option, LOST, "the job is not imported")
            else:
                self.note(option, LOST, "weir does not know this option of fio")
        for before, after in self.job.replaced:
            text = f"replaced in line {after.line}"
            self.result.fates.append(
                Fate(before.name, before.value, before.line, str(before.file), NO_EFFECT, text)
            )
        self.result.fates.sort(key=lambda one: (one.line, one.option))

    def here(self) -> Path:
        return next((one.file for one in self.job.options.values()), Path())


def sizes_of(recipe: dict[str, Any]) -> list[tuple[int, int]]:
    """Request sizes of a workload in bytes, each with its share in per cent."""
    drawn = recipe["sizes"]["drawn"]
    if "fixed" in drawn:
        return [(drawn["fixed"]["bytes"], 100)]
    return [(part["of"]["fixed"]["bytes"], round(part["share"] * 100)) for part in drawn["mixture"]]


def _distribution(sizes: list[tuple[int, int]]) -> dict[str, Any]:
    if len(sizes) == 1:
        return {"fixed": {"bytes": sizes[0][0]}}
    return {"mixture": [{"share": share / 100, "of": {"fixed": {"bytes": size}}} for size, share in sizes]}


def _in_words(sizes: list[tuple[int, int]]) -> str:
    return ", ".join(f"{size} bytes" if share == 100 else f"{share} % {size} bytes" for size, share in sizes)
