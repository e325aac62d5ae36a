"""How a settings class describes the environment variables that it reads; `docs/operating/settings.md` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable.

    Attributes:
        name: `BACKPROBE_...`.
        meaning: What it sets, for the operator, in Markdown.
        default: The text that the page shows as its default; None: the default of the field.
    """

    name: str
    meaning: str
    default: str | None = None


def describe_variable(name: str, meaning: str, default: str | None = None) -> dict[str, Any]:
    """Return the metadata of a dataclass field that is read from one environment variable."""
    return describe_variables(Variable(name=name, meaning=meaning, default=default))


def describe_variables(*variables: Variable) -> dict[str, Any]:
    """Return the metadata of a dataclass field that is read from several environment variables."""
    return {"variables": variables}
