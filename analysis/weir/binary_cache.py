"""Calls of the `weir` binary, and a cache of its output in `results/traces/cache/`.

The name of a cached file has a checksum of its inputs: the specification's bytes, the binary, the arguments,
and the source of the function that reduced the output. Equal inputs read the file; others make another file.
"""

import hashlib
import inspect
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from weir import locate
from weir.errors import InputError

#: The folder of real recordings, which are not part of this repository.
TRACES_VARIABLE = "WEIR_TRACES"
SPECS = locate.MARK
#: The text of figures and tables in place of an absent recording.
NOT_AT_HAND = "real trace not at hand"

T = TypeVar("T")


@dataclass(frozen=True)
class BinaryCache:
    """The `weir` binary with a cache of its output.

    Attributes:
        command: the `weir` command.
        root: the folder that holds `workloads/`.
        cache: the folder of cached output; it is made if absent.
        recordings: the folder of real recordings; None if there is none.
    """

    command: Path
    root: Path
    cache: Path
    recordings: Path | None
    _identity: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            state = self.command.stat()
            self.cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"cannot be used ({error.strerror})"
            raise InputError(error.filename, problem, "build the binary with make setup") from error
        # A checksum of the binary (130 MB) would take longer than making a film.
        object.__setattr__(self, "_identity", f"{state.st_size}:{state.st_mtime_ns}")

    @classmethod
    def find(cls, results: Path) -> "BinaryCache":
        """The binary of the project.

        Raises:
            InputError: no repository or no binary is found.
        """
        root = locate.project()
        if root is None:
            here = Path(os.environ.get(locate.ROOT_VARIABLE, Path.cwd())).resolve()
            remedy = f"call this in the repository, or set {locate.ROOT_VARIABLE}"
            raise InputError(here, f"holds no {SPECS}", remedy)
        folder = os.environ.get(TRACES_VARIABLE)
        recordings = Path(folder).resolve() if folder else None
        return cls(locate.binary(), root, results.resolve() / "traces" / "cache", recordings)

    def frames(self, workload: str, seed: int) -> np.ndarray:
        """Sizes in bytes of the frames of a workload's film, in display order."""
        command = ("workload", "frames", workload, "--seed", str(seed), "--out")
        key = [workload, "frames", str(seed)]
        path = self.made(key, ".txt", lambda out: self.output(*command, out), self._spec(workload))
        return np.loadtxt(path, dtype=np.int64, ndmin=1)

    def stream(
        self,
        workload: str,
        seed: int,
        duration_s: float,
        reduce: Callable[[pl.LazyFrame], pl.LazyFrame],
        clients: int = 1,
    ) -> pl.DataFrame:
        """The requests of a workload, reduced to a small table; only the table is cached.

        Args:
            workload: its name.
            seed: the seed.
            duration_s: length of the stream.
            reduce: from the columns of requests.parquet to a small table.
            clients: number of clients.
        """
        arguments = ["--seed", seed, "--clients", clients, "--duration-s", duration_s]

        def make(out: Path) -> None:
            with tempfile.TemporaryDirectory(dir=self.cache, prefix=".stream-") as folder:
                whole = Path(folder) / "requests.parquet"
                self.output("generate", workload, *map(str, arguments), "--out", whole)
                reduce(pl.scan_parquet(whole)).collect().write_parquet(out)

        key = [workload, *map(str, arguments), inspect.getsource(reduce)]
        return pl.read_parquet(self.made(key, ".parquet", make, self._spec(workload)))

    def recording(
        self, name: str, options: Iterable[str] = (), cache_mib: int | None = None
    ) -> pl.DataFrame | None:
        """The requests of a real recording, in the columns of requests.parquet; None if it is absent.

        Args:
            name: its path in the folder of recordings.
            options: options of its format, such as `unit=bytes`.
            cache_mib: filter the requests through an LRU cache of this many MiB.

        Raises:
            InputError: the recording exists and cannot be read.
        """
        source = self.path_of(name)
        if source is None:
            return None
        told = [part for option in options for part in ("--option", option)]
        if cache_mib is None:
            command = ["convert", str(source), *told, "--to", "parquet"]
        else:
            lru = ["--cache", "lru", "--cache-mib", str(cache_mib)]
            command = ["filter", str(source), *told, *lru, "--as", "parquet"]
        state = source.stat()
        key = [*command, str(state.st_size), str(state.st_mtime_ns)]
        remedy = "is the recording damaged? take it out of the folder, or get it again"

        def make(out: Path) -> None:
            self.output("trace", *command, "--out", out, remedy=remedy)

        path = self.made(key, ".parquet", make)
        return pl.read_parquet(path)

    def path_of(self, name: str) -> Path | None:
        """The path of a real recording; None if it is absent."""
        path = self.recordings / name if self.recordings else None
        return path if path and path.is_file() else None

    def each(self, make: Callable[[int], T], seeds: Iterable[int]) -> list[T]:
        """Calls a function for each seed, on all processors; results in the order of the seeds."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(make, seeds))

    def output(
        self,
        *arguments: str | Path,
        remedy: str = "is the binary as new as the repository? make setup",
        accepted: tuple[int, ...] = (0,),
        shown: bool = False,
    ) -> str:
        """The binary's standard output for these arguments.

        Args:
            arguments: of the command line.
            remedy: the remedy that an error names.
            accepted: exit codes that are no error.
            shown: leave the output to the terminal and return nothing.

        Raises:
            InputError: the binary ended with another exit code.
        """
        done = subprocess.run(
            [self.command, *arguments],
            cwd=self.root,
            stdout=None if shown else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode not in accepted:
            reason = done.stderr.strip().removeprefix("error: ").splitlines()
            problem = f"`weir {' '.join(map(str, arguments))}` failed: {reason[0] if reason else 'no reason'}"
            raise InputError(self.command, problem, remedy)
        return done.stdout or ""

    def made(self, key: list[str], ending: str, make: Callable[[Path], object], content: bytes = b"") -> Path:
        """A file of the cache, made if it is absent.

        Args:
            key: all inputs, the file's name first; the binary is added.
            ending: the ending of the file's name.
            make: writes the file to the path that it is given.
            content: the bytes of an input file.
        """
        digest = hashlib.sha256(content)
        for part in (self._identity, *key):
            digest.update(b"\0" + part.encode())
        path = self.cache / f"{Path(key[0]).stem}-{digest.hexdigest()[:20]}{ending}"
        if not path.exists():
            # A run that is interrupted leaves no incomplete file under the final name.
            partial = path.with_name(f".{path.stem}.partial{ending}")
            make(partial)
            partial.replace(path)
        return path

    def describe_recordings(self) -> str:
        """One line that says where real recordings are looked for."""
        if self.recordings is None:
            return f"{TRACES_VARIABLE} is not set: every figure shows synthetic streams only."
        return f"Real recordings are read from the folder that {TRACES_VARIABLE} names."

    def _spec(self, workload: str) -> bytes:
        # Workloads may lie in folders within.
        found = sorted((self.root / SPECS).rglob(f"{workload}.yml"))
        path = found[0] if found else self.root / SPECS / f"{workload}.yml"
        try:
            return path.read_bytes()
        except OSError as error:
            remedy = "weir list workloads shows what there is"
            raise InputError(path, f"cannot be read ({error.strerror})", remedy) from error
