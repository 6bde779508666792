from dataclasses import dataclass


@dataclass(frozen=True)
class mistake:
    """One place of a mistake that a test switches on while it runs. A mistake may have several rows."""

    file: str
    old: str
    """Exactly once in the file."""
    new: str
    """The same with the switch: without it the code does what `old` does."""
    name: str
    """As the switch calls it."""


@dataclass(frozen=True)
class table:
    """Mistakes whose switch is asked in the same way."""

    header: str
    """Declares the switch. The copies include it."""
    switch: str
    """How a mistake's switch is asked, with NAME for its name."""
    mistakes: list[mistake]
