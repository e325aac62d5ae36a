"""The facts that a rule may need, and whether a record holds them. What a record lacks is said, never guessed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from backprobe.record import SCHEMA_VERSION
from backprobe.record.encoding.versions import since

if TYPE_CHECKING:
    from backprobe.record import Record

ALWAYS: Final = frozenset(
    {"site", "binding", "snapshot", "grad-read", "backward", "version", "raised", "optimizer", "module", "parents"}
    | {"hook", "mode", "call", "function"}
)
"""Held by every tier."""

WALKED: Final = frozenset({"node", "saved", "retention", "grad-life"})
"""Held where backward calls are walked: every tier but `state`."""

MEASURED: Final = frozenset({"stats"})
"""Held where values are measured: `full` and `deep`."""

TABLES: Final[dict[str, tuple[str, str | None]]] = {
    "hook": ("hooks", None),
    "mode": ("modes", None),
    "call": ("watched_calls", None),
    "function": ("nodes", "custom_site"),
}
"""Fact -> the table, or a field of one, that came later than the first version of the format: older records lack it."""

FACTS: Final = ALWAYS | WALKED | MEASURED


def missing_fact(record: Record, needs: Iterable[str]) -> str | None:
    """Why the first of these facts is not in the record; None if all are.

    Raises:
        KeyError: there is no such fact.
    """
    tier = record.header.tier
    for fact in needs:
        if fact not in FACTS:
            raise KeyError(fact)
        if fact in TABLES and (record.header.first_version or SCHEMA_VERSION) < since(*TABLES[fact]):
            return f"needs `{fact}`, which this record is too old to hold"
        if fact in WALKED and tier == "state":
            return f"needs `{fact}`, which the tier `state` does not record"
        if fact in MEASURED and tier in ("state", "grad"):
            return f"needs `{fact}`, which the tier `{tier}` does not record"
    return None
