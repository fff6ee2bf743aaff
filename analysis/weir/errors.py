"""The one error that a person can put right: an input that is absent, damaged or of another kind."""

from pathlib import Path


class InputError(Exception):
    """An input cannot be used.

    Attributes:
        path: the file or folder at fault.
        problem: what is wrong with it, with the field and the value where there is one.
        remedy: what to do about it.
    """

    def __init__(self, path: Path | str, problem: str, remedy: str) -> None:
        self.path = Path(path)
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{path}: {problem}; {remedy}")

    def __reduce__(self) -> tuple[type, tuple[Path, str, str]]:
        """So that it comes whole out of another process."""
        return type(self), (self.path, self.problem, self.remedy)


class DamagedError(InputError):
    """A file of a run is not as it was written: what it says must not be believed."""
