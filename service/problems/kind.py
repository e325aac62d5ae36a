"""What is said of one kind of problem."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of problem; `/problems/{code}` shows it.

    Attributes:
        hint: The next step, for whoever must act; each answer has it unless it brings a better one.
    """

    code: str
    status: int
    title: str
    hint: str
