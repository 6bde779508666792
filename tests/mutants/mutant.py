from dataclasses import dataclass


@dataclass(frozen=True)
class mutant:
    """A mistake that somebody could make, and the promise it breaks."""

    file: str
    old: str
    """Exactly once in the file."""
    new: str
    promise: str
    test: str = ""
    """What notices it: `[NAME=value] program [filter]`."""
    survives: str = ""
    """Or why no test does."""
