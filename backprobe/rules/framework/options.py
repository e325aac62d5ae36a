"""What may be chosen about judging: which rules, how bad their findings are, and the numbers of the heuristic ones.

The same keys stand in `[tool.backprobe]` and in a request. What is not known is refused with the nearest name.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, cast

from backprobe.rules.framework.finding import Finding, RuleName
from backprobe.rules.framework.rule import Confidence, Level, Rule

LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")
"""Worst first."""

CONFIDENCES: Final[tuple[Confidence, ...]] = ("proven", "likely", "heuristic")
"""Surest first."""


class BadOption(ValueError):
    """A setting that cannot be followed; the message says which, and what is near it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """Which rules judge, and how.

    Attributes:
        select: Names or codes, or beginnings of codes (`BP3`); None: all. ignore: those left out of them.
        severity: A level by name or code; it replaces the rule's own, but no level that an exception gave.
        per_file_ignores: Names or codes by a pattern of paths (`tests/*`); findings there are left out.
        thresholds: Numbers of heuristic rules, by `rule-name.threshold`.
        min_confidence: Findings less sure than this are left out.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Level] = field(default_factory=dict[str, Level])
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])
    min_confidence: Confidence = "heuristic"

    def wants(self, rule: Rule) -> bool:
        """The rule is to judge."""
        chosen = self.select is None or _names(rule, self.select)
        return chosen and not _names(rule, self.ignore)

    def keeps(self, finding: Finding) -> bool:
        """The finding is to be shown, as far as its place, confidence and rule tell: some rules are about rules."""
        if CONFIDENCES.index(finding.confidence) > CONFIDENCES.index(self.min_confidence):
            return False
        if _names(finding.rule, self.ignore):
            return False
        names = {finding.rule.name, finding.rule.code}
        return not any(
            fnmatch.fnmatch(finding.location.path, pattern) and not names.isdisjoint(ignored)
            for pattern, ignored in self.per_file_ignores.items()
        )

    def level(self, finding: Finding) -> Level:
        """How bad the finding is under these options."""
        if finding.level == "error":
            return finding.level
        return self.severity.get(finding.rule.name) or self.severity.get(finding.rule.code) or finding.level


def _names(rule: Rule | RuleName, asked: Iterable[str]) -> bool:
    return any(one == rule.name or rule.code.startswith(one.upper()) for one in asked if one)


_thresholds: ContextVar[Mapping[str, float] | None] = ContextVar("_thresholds", default=None)


@contextmanager
def chosen_thresholds(thresholds: Mapping[str, float]) -> Generator[None]:
    """Inside, `threshold` answers with these numbers where they name one."""
    token = _thresholds.set(thresholds)
    try:
        yield
    finally:
        _thresholds.reset(token)


def threshold(rule: Rule, name: str) -> float:
    """One number of a rule: as chosen, else as its declaration says.

    Raises:
        KeyError: the rule declares no such number.
    """
    return (_thresholds.get() or {}).get(f"{rule.name}.{name}", rule.thresholds[name])


def options_from(settings: Mapping[str, Any], rules: Sequence[Rule]) -> JudgeOptions:
    """The options that a table of settings names; keys of other parts of Backprobe must have been taken out.

    Raises:
        BadOption: an unknown key, rule, level or threshold, or a value of the wrong type.
    """
    given: dict[str, Any] = {}
    for key, value in settings.items():
        known = key.replace("-", "_")
        if known not in _READERS:
            raise BadOption(f"`{key}` is no setting of judging{_near(known, _READERS)}")
        given[known] = _READERS[known](key, value, rules)
    return JudgeOptions(**given)


def kept_options(settings: Mapping[str, Any] | None) -> JudgeOptions | None:
    """The options of settings that were checked when they were stored; None: none were given.

    A rule that is gone since is no fault: there is nothing left to choose.
    """
    if settings is None:
        return None
    given = dict(settings)
    given |= {key: tuple(given[key]) for key in ("select", "ignore") if given.get(key) is not None}
    if "per_file_ignores" in given:
        given["per_file_ignores"] = {path: tuple(names) for path, names in given["per_file_ignores"].items()}
    return JudgeOptions(**given)


def _listed(key: str, value: Any, rules: Sequence[Rule]) -> tuple[str, ...]:
    names: list[Any] = [*cast("Sequence[Any]", value)] if isinstance(value, (list, tuple)) else [None]
    if not all(isinstance(one, str) for one in names):
        raise BadOption(f"`{key}` must be a list of rule names or codes, not {value!r}")
    for one in names:
        _known(key, one, rules)
    return tuple(names)


def _levels(key: str, value: Any, rules: Sequence[Rule]) -> dict[str, Level]:
    for name, level in _mapped(key, value).items():
        _known(key, name, rules)
        if level not in LEVELS:
            raise BadOption(f"`{key}`: {level!r} is no level; `{name}` may be error, warning or note")
    return dict(value)


def _patterns(key: str, value: Any, rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    return {pattern: _listed(f"{key}.{pattern}", names, rules) for pattern, names in _mapped(key, value).items()}


def _numbers(key: str, value: Any, rules: Sequence[Rule]) -> dict[str, float]:
    known = {f"{rule.name}.{name}" for rule in rules for name in rule.thresholds}
    for name, number in _mapped(key, value).items():
        if name not in known:
            raise BadOption(f"`{key}`: no rule has a threshold `{name}`{_near(name, known)}")
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise BadOption(f"`{key}`: `{name}` must be a finite number, not {number!r}")
    return {name: float(number) for name, number in value.items()}


def _confidence(key: str, value: Any, _rules: Sequence[Rule]) -> Confidence:
    if value not in CONFIDENCES:
        raise BadOption(f"`{key}` must be proven, likely or heuristic, not {value!r}")
    return value


_READERS: Final[dict[str, Callable[[str, Any, Sequence[Rule]], Any]]] = {
    "select": _listed,
    "ignore": _listed,
    "severity": _levels,
    "per_file_ignores": _patterns,
    "thresholds": _numbers,
    "min_confidence": _confidence,
}


def _mapped(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadOption(f"`{key}` must be a table, not {value!r}")
    return cast("Mapping[str, Any]", value)


def _known(key: str, name: str, rules: Sequence[Rule]) -> None:
    if not any(_names(rule, (name,)) for rule in rules):
        raise BadOption(f"`{key}`: there is no rule `{name}`{_near(name, [rule.name for rule in rules])}")


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean `{near[0]}`?" if near else ""
