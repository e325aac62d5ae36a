"""Record -> findings: run each rule, collapse, fold, fingerprint, suppress, sort. Pure: the rules' order cannot matter.

1. An exception in a rule costs that rule only; it becomes `BP902 rule-failed`.
2. A rule whose facts are not in the record is not run, and that is said: not run is not passed. Nor did a rule judge
   that found nothing where it looked for the program's text, which is not in the record.
3. So is one that whoever judges has no more time for; what the others found stays.
4. A finding is called proven only where the record shows all that could speak against it (`completeness.py`).
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

import backprobe
from backprobe.rules.analysis.calls.call_stacks import with_call_stacks
from backprobe.rules.analysis.gradients.measured_cuts import measured
from backprobe.rules.analysis.invariants.checks import (
    Check,
    check_invariant,
    is_invariant,
    leave_out_explained,
    unknown_check,
)
from backprobe.rules.analysis.rows.completeness import is_proven, text_not_parsed, what_went_unseen
from backprobe.rules.edits.bound_names import with_bound_names
from backprobe.rules.framework.deadline import WHY_NO_TIME, WHY_SLOW, JudgingTooLong, RuleTooSlow
from backprobe.rules.framework.facts import missing_fact
from backprobe.rules.framework.finding import Finding, Occurrences, with_fingerprints
from backprobe.rules.framework.folding import folded
from backprobe.rules.framework.options import LEVELS, JudgeOptions, chosen_thresholds
from backprobe.rules.framework.plugins import every_module, installed
from backprobe.rules.framework.rule import Rule, RuleModule
from backprobe.rules.framework.suppressions import suppressed
from backprobe.rules.framework.tables import shared_tables, text_reads
from backprobe.rules.health import (
    autograd_error_unexplained,
    findings_left_out,
    rule_failed,
    unknown_suppression,
    unused_suppression,
)
from backprobe.rules.health.findings_left_out import first_of_each_rule
from backprobe.rules.health.rule_failed import failure, plug_in_failure

if TYPE_CHECKING:
    from backprobe.record import Record

_OWN: Final = {
    module.RULE.name: module.RULE
    for module in (autograd_error_unexplained, findings_left_out, rule_failed, unknown_suppression, unused_suppression)
}
"""Rules that judge what the others found."""

WHY_BROKE: Final = "the check broke; BP902 names the error"
"""Why the state of an invariant is unknown whose code raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """A rule that did not judge this record, and the fact that it lacked, or that there was no time for it."""

    code: str
    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the rules say about one record.

    Attributes:
        findings: Worst first, then in order of the source.
        rules_judged: Rules that ran to their end. not_run: those whose facts the record lacks, or that
            there was no time for.
        ruleset: Digest of the rules' sources and the options: the same digest gives the same findings.
        checks: The state of each invariant that was chosen, in order of code.
    """

    findings: tuple[Finding, ...]
    rules_judged: int
    not_run: tuple[NotRun, ...]
    ruleset: str
    checks: tuple[Check, ...] = ()

    def at_least(self, level: str) -> tuple[Finding, ...]:
        """The findings that are at least this bad and not suppressed."""
        worst = LEVELS[: LEVELS.index(level) + 1]
        return tuple(finding for finding in self.findings if finding.level in worst and finding.suppressed is None)

    def of_unnamed(self, program: str) -> Judgement:
        """The same of a program that was sent without the name of a file: this stands for it in each fingerprint."""
        return replace(self, findings=with_fingerprints(self.findings, program))


def judge(
    record: Record, options: JudgeOptions | None = None, *, rules: Sequence[RuleModule] | None = None
) -> Judgement:
    """Judge a record, live or stored alike.

    Args:
        record: What capture saw; it is only read.
        options: Which rules judge; all by default.
        rules: The rules to choose from; by default the built-in set and the plug-ins that are installed.
    """
    options = options or JudgeOptions()
    modules = selected(every_module() if rules is None else rules, options)
    with _without_collections(), shared_tables(record), chosen_thresholds(options.thresholds):
        found, judged, not_run = _found(record, modules)
        if rules is None:
            found += [plug_in_failure(record, one.name, one.error) for one in installed().left_out]
        first = list(first_of_each_rule(sorted(collapsed(found), key=_place)))
        single = folded(record, first, [module.RULE for module in modules])
        invariants = [module for module in modules if is_invariant(module)]
        unknown = {module.RULE.code: WHY_BROKE for module in invariants if module.RULE.name not in judged}
        unknown |= {rule.code: rule.why for rule in not_run}
        checks = tuple(check_invariant(record, module, found, unknown) for module in invariants)
        single = leave_out_explained(
            single, invariants, rules_were_ignored=options.select is None and bool(options.ignore)
        )
        single = measured(record, single, [module.RULE for module in modules])
        if rules is None and options.select is None and not options.ignore:
            single += _unexplained(record, single)
        single = with_call_stacks(record, with_bound_names(record, single))
        declared = {module.RULE.name: module.RULE for module in modules} | _OWN
        single = [_graded(record, declared[finding.rule.name], finding) for finding in single]
        kept = with_fingerprints(finding for finding in single if options.keeps(finding))
        every = (_graded(record, declared[one.rule.name], one) for one in suppressed(record, kept, judged))
        shown = [finding for finding in every if options.keeps(finding)]
    levelled = (msgspec.structs.replace(finding, level=options.level(finding)) for finding in shown)
    return Judgement(
        findings=tuple(sorted(levelled, key=lambda finding: LEVELS.index(finding.level))),
        rules_judged=len(judged),
        not_run=tuple(not_run),
        ruleset=ruleset(options),
        checks=checks,
    )


def unjudged(options: JudgeOptions | None = None) -> Judgement:
    """The judgement of a record for which the time did not suffice: no rule has judged it."""
    options = options or JudgeOptions()
    modules = selected(every_module(), options)
    left = tuple(NotRun(code=module.RULE.code, name=module.RULE.name, why=WHY_NO_TIME) for module in modules)
    checks = tuple(unknown_check(module, WHY_NO_TIME) for module in modules if is_invariant(module))
    return Judgement(findings=(), rules_judged=0, not_run=left, ruleset=ruleset(options), checks=checks)


def _graded(record: Record, rule: Rule, finding: Finding) -> Finding:
    """The finding as sure as its record allows; `unseen` in its evidence says why it is not proven."""
    if finding.confidence != "proven" or is_proven(record, rule, finding):
        return finding
    evidence = {**finding.evidence, "unseen": what_went_unseen(record, rule, finding)}
    return msgspec.structs.replace(finding, confidence="likely", evidence=evidence)


@contextmanager
def _without_collections() -> Generator[None]:
    """The cycle collector rests: tables hold no cycles, and looking for them took half the time on a large record."""
    rests = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if rests:
            gc.enable()


def _found(record: Record, modules: Iterable[RuleModule]) -> tuple[list[Finding], list[str], list[NotRun]]:
    """What the rules say one by one, the names of those that judged to their end, and those that could not."""
    found: list[Finding] = []
    judged: list[str] = []
    not_run: list[NotRun] = []
    lost = text_not_parsed(record)
    time_is_up = False
    for module in modules:
        rule = module.RULE
        lacking = WHY_NO_TIME if time_is_up else missing_fact(record, rule.needs)
        if lacking is not None:
            not_run.append(NotRun(code=rule.code, name=rule.name, why=lacking))
            continue
        before = len(found)
        try:
            with text_reads() as reads_text:
                found += module.check(record)
            if lost is not None and len(found) == before and reads_text():
                not_run.append(NotRun(code=rule.code, name=rule.name, why=lost))
            else:
                judged.append(rule.name)
        except RuleTooSlow as error:
            del found[before:]
            not_run.append(NotRun(code=rule.code, name=rule.name, why=WHY_SLOW))
            time_is_up = isinstance(error, JudgingTooLong)
        except Exception as error:  # noqa: BLE001 - the fence: a rule's bug costs that rule only
            found.append(failure(record, rule, error))
    return found, judged, not_run


def _unexplained(record: Record, found: list[Finding]) -> list[Finding]:
    """What is said of an exception that no rule explains; behind the same fence as the rules."""
    try:
        return autograd_error_unexplained.unexplained(record, found)
    except Exception as error:  # noqa: BLE001 - the fence: a record may lack the place that the exception names
        return [failure(record, autograd_error_unexplained.RULE, error)]


def selected(rules: Iterable[RuleModule], options: JudgeOptions) -> list[RuleModule]:
    """The rules that the options name, in order of their codes."""
    return sorted((module for module in rules if options.wants(module.RULE)), key=lambda module: module.RULE.code)


def collapsed(findings: Iterable[Finding]) -> list[Finding]:
    """One finding per rule, place and binding; the first one stays, with the count and steps of all."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        place = finding.location
        key = (finding.rule.name, finding.level, place.path, place.region, finding.evidence.get("binding"))
        first = kept.get(key)
        if first is None:
            kept[key] = finding
            continue
        ours, more = first.occurrences, finding.occurrences
        merged = Occurrences(
            count=ours.count + more.count,
            first_step=min(ours.first_step, more.first_step),
            last_step=max(ours.last_step, more.last_step),
        )
        kept[key] = msgspec.structs.replace(first, occurrences=merged)
    return list(kept.values())


def _place(finding: Finding) -> tuple[str, int, int, str]:
    region = finding.location.region
    return finding.location.path, region.start_line, region.start_col, finding.rule.code


def ruleset(options: JudgeOptions | None = None) -> str:
    """Digest of all that decides about findings: the sources in this folder and those of plug-ins, then the options.

    Without options it is the beginning of every digest that the same rules have with some.
    """
    digest = hashlib.sha256(_sources())
    digest.update(installed().digest)
    rules = f"rs_{digest.hexdigest()[:16]}"
    if options is None or options == JudgeOptions():
        return rules
    chosen = msgspec.json.encode(asdict(options), order="deterministic")
    return f"{rules}_{hashlib.sha256(chosen).hexdigest()[:8]}"


@cache
def _sources() -> bytes:
    folder = Path(str(backprobe.__file__)).parent / "rules"
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()
