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
    breaches = [finding for finding in found if finding.rule.code == code]
    is_broken = bool(breaches)
    explaining = dict.fromkeys(
        finding.rule.code for finding in found if any(_explains(module, finding, breach) for breach in breaches)
    )
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
    modules = {module.RULE.code: module for module in invariants}

    def is_explained(breach: Finding) -> bool:
        module = modules.get(breach.rule.code)
        return module is not None and (
            rules_were_ignored or any(_explains(module, finding, breach) for finding in findings)
        )

    return [finding for finding in findings if not is_explained(finding)]


def _explains(module: InvariantModule, finding: Finding, breach: Finding) -> bool:
    """Return whether a finding of a rule stands for a breach. A note does so only if both speak of one tensor."""
    if not finding.rule.code.startswith(module.EXPLAINED_BY) or finding.rule.code.startswith(FAMILY):
        return False
    return finding.level != "note" or not _tensors(finding).isdisjoint(_tensors(breach))


def _tensors(finding: Finding) -> set[int]:
    return {number for kind, number in finding.subject.facts if kind == "tensor"}


FAMILY: Final = "BP95"
"""The codes of invariants begin so."""
