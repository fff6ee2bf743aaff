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


class DamagedError(InputError):
    """A file of a run was changed after it was written."""
