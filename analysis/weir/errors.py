"""Errors of input: a file that is absent, damaged or of another kind."""

from pathlib import Path


class InputError(Exception):
    """An input cannot be used.

    Attributes:
        path: the file or folder at fault.
        problem: what is wrong, with the field and its value.
        remedy: what to do.
    """

    def __init__(self, path: Path | str, problem: str, remedy: str) -> None:
        self.path = Path(path)
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{path}: {problem}; {remedy}")

    def __reduce__(self) -> tuple[type, tuple[Path, str, str]]:
        """Pickled with its attributes, for other processes."""
        return type(self), (self.path, self.problem, self.remedy)


class Skipped(InputError):
    """Something optional is absent: results of a study, or the binary. A notebook goes on without it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__("", problem, remedy)
        self.args = (f"skipped: {problem}; {remedy}",)

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Pickled with its attributes, for other processes."""
        return type(self), (self.problem, self.remedy)

    @classmethod
    def no_results(cls, study: str, command: str = "make study") -> "Skipped":
        """There are no results of this study."""
        return cls(f"no results of {study}", f"{command} STUDY={study}")


class DamagedError(InputError):
    """A file of a run was changed after it was written."""
