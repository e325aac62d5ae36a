"""What a policy says of an audit's item: the rules it fails by, those it is warned by, and its verdict.

The same for an audit of the service and for one on this machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from backprobe.rules.framework.manual import UnknownRule, every_rule, manual
from backprobe.severity import CONFIDENCES, LEVELS, Level

if TYPE_CHECKING:
    from backprobe.rules.framework.finding import Finding

Verdict = Literal["pass", "warn", "fail", "error", "not-run"]
"""Of an item. error: its program failed or exceeded a limit. not-run: nobody judged it, which is never a pass."""

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
WORST: Final = ("fail", "error", "not-run", "warn", "pass")

LEVEL_PATTERNS: Final = ("level:error", "level:warning", "level:note")

_CONFIDENCES: Final = tuple(reversed(CONFIDENCES))
_FAMILY: Final = re.compile(r"[A-Z]+[0-9]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding as far as a policy looks at it."""

    rule: str
    code: str
    level: Level
    confidence: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One rule's word on one item.

    Attributes:
        known: How many of the findings the baseline had.
        level: The worst of the findings; None: there are none, or it was not stored with the verdict.
    """

    rule: str
    state: Literal["warn", "fail", "not-run"]
    findings: int
    known: int
    level: Level | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A policy's body. The default is the policy of an audit that names none.

    Attributes:
        fail, warn: Names or codes of rules, beginnings of codes (`BP3`), `level:error`, or `*`; fail goes first.
        min_confidence: Findings less sure are not looked at.
        new_only: Findings of the baseline neither fail nor warn.
        not_run: What an item that could not be judged does to the audit.
        min_backward_calls: An item with fewer backward calls was not judged: rules had nothing to look at.
    """

    fail: Sequence[str] = ("level:error",)
    warn: Sequence[str] = ("*",)
    min_confidence: str = "heuristic"
    new_only: bool = False
    not_run: Literal["fail", "warn"] = "fail"
    min_backward_calls: int = 0

    def word(self, finding: Found) -> Literal["warn", "fail"] | None:
        """What a finding does; None: nothing."""
        if _CONFIDENCES.index(finding.confidence) < _CONFIDENCES.index(self.min_confidence):
            return None
        if any(_names(pattern, finding) for pattern in self.fail):
            return "fail"
        return "warn" if any(_names(pattern, finding) for pattern in self.warn) else None

    def effect(self, finding: Found, known: Collection[str]) -> Literal["warn", "fail"] | None:
        """The same where a baseline has these fingerprints: by `new_only`, what it has does nothing."""
        return None if self.new_only and finding.fingerprint in known else self.word(finding)

    def cells(self, findings: Iterable[Found], known: Collection[str], not_run: Iterable[str]) -> list[Cell]:
        """What is to be said of one item, rule by rule; a rule that passes has no cell.

        Args:
            findings: Those of its run that nobody suppressed.
            known: Fingerprints of the baseline.
            not_run: Names of rules that lacked a fact.
        """
        counts: Counter[str] = Counter()
        old: Counter[str] = Counter()
        words: dict[str, Literal["warn", "fail"]] = {}
        worst: dict[str, Level] = {}
        for finding in findings:
            word = self.word(finding)
            if word is None:
                continue
            counts[finding.rule] += 1
            old[finding.rule] += finding.fingerprint in known
            ranks = (LEVELS.index(level) for level in (finding.level, worst.get(finding.rule, finding.level)))
            worst[finding.rule] = LEVELS[min(ranks)]
            if self.effect(finding, known) is None:
                continue
            words[finding.rule] = "fail" if "fail" in (word, words.get(finding.rule)) else "warn"
        said = [
            Cell(rule=rule, state=words[rule], findings=counts[rule], known=old[rule], level=worst[rule])
            for rule in sorted(words)
        ]
        lacking = sorted(set(not_run) - set(words))
        return said + [Cell(rule=rule, state="not-run", findings=0, known=0) for rule in lacking]

    def explain_missing_calls(self, backward_calls: int) -> str | None:
        """Say why a program with so many backward calls was not judged; None: it made enough."""
        if backward_calls >= self.min_backward_calls:
            return None
        calls = f"{backward_calls} backward call{'' if backward_calls == 1 else 's'}"
        return f"the program made {calls}; the policy demands at least {self.min_backward_calls} (min-backward-calls)"

    def verdict(self, status: str | None, cells: Iterable[Cell], *, judged: bool, backward_calls: int) -> Verdict:
        """Of one item.

        Args:
            status: Of its run; None: it was refused and has none.
            judged: The rules have judged the run.
            backward_calls: Of the run.
            cells: What was said of it.
        """
        said = list(cells)
        if any(cell.state == "fail" for cell in said):
            return "fail"
        if status in ("failed", "exceeded"):
            return "error"
        demanded = {cell.rule for cell in said if cell.state == "not-run"} & set(self.fail)
        if status != "succeeded" or not judged or demanded or backward_calls < self.min_backward_calls:
            return "not-run"
        return "warn" if any(cell.state == "warn" for cell in said) else "pass"

    def passes(self, verdicts: Mapping[str, int]) -> bool:
        """Whether an audit with so many items of each verdict passed."""
        bad = verdicts.get("fail", 0) + verdicts.get("error", 0)
        return not bad and (self.not_run == "warn" or not verdicts.get("not-run", 0))


def found_of(finding: Finding) -> Found:
    """A finding as a policy looks at it."""
    return Found(
        rule=finding.rule.name,
        code=finding.rule.code,
        level=finding.level,
        confidence=finding.confidence,
        fingerprint=finding.fingerprint,
    )


def rules_of(body: Mapping[str, Any] | None) -> Rules:
    """The rules in a policy's body; None: no policy."""
    return Rules() if body is None else Rules(**body)


def unknown_pattern(pattern: str) -> str | None:
    """Why a pattern names no rule, in a sentence; None: it does."""
    if pattern in ("*", *LEVEL_PATTERNS):
        return None
    if pattern.startswith("level:"):
        return f"There is no {pattern}; there are {', '.join(LEVEL_PATTERNS)}."
    if _FAMILY.fullmatch(pattern) and any(rule.code.startswith(pattern) for rule in every_rule()):
        return None
    try:
        found = manual(pattern).rule
    except UnknownRule as error:
        return f"{str(error)[0].upper()}{str(error)[1:]}"
    return None if pattern in (found.name, found.code) else f"Write it as {found.name} or {found.code}."


def _names(pattern: str, finding: Found) -> bool:
    if pattern == "*" or pattern in (finding.rule, finding.code, f"level:{finding.level}"):
        return True
    return _FAMILY.fullmatch(pattern) is not None and finding.code.startswith(pattern)
