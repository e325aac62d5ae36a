"""What an invariant found out about a run: it holds, it is broken, or it cannot be known, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeGuard

import msgspec

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding
    from backprobe.rules.framework.rule import Rule

State = Literal["holds", "broken", "unknown"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one invariant in one run.

    Attributes:
        name: The invariant's name: `coverage`. code: the code of its findings, `BP953`.
        state: holds, broken, or unknown: the record cannot tell.
        checked: Steps, backward calls or reads that were looked at. total: all that the run made.
        unit: What `checked` and `total` count, in the plural: "steps".
        why: Why the state is unknown; "": it is known.
        findings: Codes of the findings that tell of the breach: its own, or those of the rules that explain it.
    """

    name: str
    code: str
    state: State
    checked: int
    total: int
    unit: str
    why: str = ""
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of a run an invariant could look at.

    Attributes:
        checked, total, unit: As in `Check`.
        why: Why nothing could be looked at; "" if `checked` is not 0.
    """

    checked: int
    total: int
    unit: str
    why: str = ""


class InvariantModule(Protocol):
    """A module of `rules/invariants`: a rule whose silence is a statement as well."""

    __name__: str
    __doc__: str | None
    RULE: Rule
    EXPLAINED_BY: tuple[str, ...]
    check: Callable[[Record], Iterator[Finding]]
    measure_coverage: Callable[[Record], Coverage]


def is_invariant(module: object) -> TypeGuard[InvariantModule]:
    """Return whether a rule module is an invariant."""
    return hasattr(module, "measure_coverage")


def check_invariant(
    record: Record, module: InvariantModule, found: Sequence[Finding], unknown: Mapping[str, str]
) -> Check:
    """Return the state of an invariant.

    Args:
        found: What all rules found, the invariants among them.
        unknown: Why a rule did not judge to its end, by the code of the rule.
    """
    code = module.RULE.code
    if code in unknown:
        return unknown_check(module, unknown[code])
    try:
        measured = module.measure_coverage(record)
    except Exception as error:  # noqa: BLE001 - a bug in one invariant costs that invariant only
        return unknown_check(module, f"the check broke with {type(error).__name__}")
    is_broken = any(finding.rule.code == code for finding in found)
    explaining = dict.fromkeys(finding.rule.code for finding in found if _explains(module, finding))
    return Check(
        name=_name(module),
        code=code,
        state="broken" if is_broken else "holds" if measured.checked else "unknown",
        checked=measured.checked,
        total=measured.total,
        unit=measured.unit,
        why="" if is_broken or measured.checked else measured.why,
        findings=tuple(explaining) or (code,) if is_broken else (),
    )


def unknown_check(module: InvariantModule, why: str) -> Check:
    """Return the state of an invariant that was not looked at, with the reason."""
    return Check(name=_name(module), code=module.RULE.code, state="unknown", checked=0, total=0, unit="steps", why=why)


def _name(module: InvariantModule) -> str:
    return module.RULE.name.removesuffix("-broken")


def leave_out_explained(
    findings: Sequence[Finding], invariants: Sequence[InvariantModule], *, rules_were_ignored: bool
) -> list[Finding]:
    """Return the findings without those of invariants that a rule explains, or one that was ignored may explain."""
    explained = {
        module.RULE.code
        for module in invariants
        if rules_were_ignored or any(_explains(module, finding) for finding in findings)
    }
    return [finding for finding in findings if finding.rule.code not in explained]


def _explains(module: InvariantModule, finding: Finding) -> bool:
    is_of_family = finding.rule.code.startswith(module.EXPLAINED_BY)
    return is_of_family and finding.level != "note" and not finding.rule.code.startswith(FAMILY)


FAMILY: Final = "BP95"
"""The codes of invariants begin so."""
