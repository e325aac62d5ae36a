"""A rule's own tests as values: its manual and programs, and what each must be judged to. The rule may be a mutant.

They are the sentences of `test_manuals.py` and `test_programs.py`. The other rules' findings are the same under every
mutant, for no rule sees another's: they are computed once per program.
"""

import re
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backprobe.record import Record
from backprobe.rules import RULES, Finding, judge, manual
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.facts import missing_fact
from backprobe.rules.framework.manual import MARK
from backprobe.rules.framework.tables import shared_tables
from backprobe.rules.health import autograd_error_unexplained
from backprobe.rules.manual_programs import programs
from tests.backprobe.rules.gold import read_gold, render_finding
from tests.backprobe.rules.programs import PROGRAMS
from tests.corpus.records import Records

_MARKS = re.compile(r"# <- (BP\d+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One program of a rule.

    Attributes:
        about: Which one, for people. marks: Where a finding at warning or above must stand, and nowhere else.
        gold: What people read of its one finding, as text; None: not looked at.
    """

    about: str
    program: str
    marks: tuple[tuple[str, int], ...]
    gold: str | None = None


def trials(module: types.ModuleType) -> list[Trial]:
    """The own tests of a rule, the cheapest to fail first."""
    rule = module.RULE
    found = []
    for section in manual(rule.code).sections:
        if section.title == "Example":
            lines = [n for n, line in enumerate(section.text.split("\n"), 1) if line.rstrip().endswith(MARK)]
            marks = tuple((rule.code, line) for line in lines)
            gold = read_gold().get(rule.code)
            found.append(Trial(about="Example", program=section.text, marks=marks, gold=gold))
        elif section.is_code:
            found.append(Trial(about=section.about or section.title, program=section.text, marks=()))
    own = [(name, text) for name, text in PROGRAMS.items() if name.startswith(f"{rule.name}: ")]
    return found + [Trial(about=name, program=text, marks=expected_findings(text)) for name, text in own]


def record_of(records: Records, program: str, rule: types.ModuleType) -> Record:
    """The record that a rule's own tests judge: with its gradients checked, if the rule needs that."""
    checked = "check" in rule.RULE.needs
    return programs().captured(program, check=True) if checked else records.of(program)


def expected_findings(program: str) -> tuple[tuple[str, int], ...]:
    """The codes and lines that a program is marked with, but for what is said where no rule explains an exception."""
    lines = enumerate(program.split("\n"), 1)
    found = ((code, n) for n, line in lines for code in _MARKS.findall(line.rstrip()))
    return tuple(sorted(row for row in found if row[0] != autograd_error_unexplained.RULE.code))


class Court:
    """Judges one program under one rule after another that claims to be the same rule.

    Args:
        trial: The program. rule: The rule as it stands; every other is left as it is.
    """

    def __init__(self, records: Records, trial: Trial, rule: types.ModuleType) -> None:
        self._records, self._trial, self._rule = records, trial, rule
        self._record = record_of(records, trial.program, rule)
        self._mended: dict[str, bool] = {}
        with shared_tables(self._record):
            self._others = [_remembered(self._record, other_rule) for other_rule in RULES if other_rule is not rule]

    @contextmanager
    def in_session(self) -> Iterator[None]:
        """Inside, what rules ask of the record together is answered once."""
        with shared_tables(self._record):
            yield

    def fault(self, rule: types.ModuleType) -> str | None:
        """What is wrong with this rule's verdict; None: it passes."""
        findings = judge(self._record, rules=[rule, *self._others]).findings
        broken = [finding.message for finding in findings if finding.rule.code == "BP902"]
        loud = [finding for finding in findings if finding.level != "note"]
        if self._rule.RULE.severity == "note":
            loud += [
                finding for finding in findings if finding.level == "note" and finding.rule.code == self._rule.RULE.code
            ]
        said = sorted((finding.rule.code, finding.location.region.start_line) for finding in loud)
        if broken:
            return broken[0]
        if said != sorted(self._trial.marks):
            return f"said {said}, not {sorted(self._trial.marks)}"
        return self._read(findings) or self._not_mended(loud)

    def _read(self, findings: tuple[Finding, ...]) -> str | None:
        if self._trial.gold is None:
            return None
        own = (finding for finding in findings if finding.rule.code == self._rule.RULE.code or finding.level != "note")
        texts = [render_finding(self._record, finding) for finding in own]
        return None if texts == [self._trial.gold] else "it reads otherwise than the gold file"

    def _not_mended(self, loud: list[Finding]) -> str | None:
        for fix in (fix for finding in loud for fix in finding.fixes if fix.edits):
            mended = edited(self._trial.program, fix.edits)
            if mended not in self._mended:
                self._mended[mended] = self._silent(mended)
            if not self._mended[mended]:
                return f"the fix `{fix.title}` does not fix it"
        return None

    def _silent(self, program: str) -> bool:
        try:
            compile(program, "train.py", "exec")
        except SyntaxError:
            return False
        return all(finding.level == "note" for finding in judge(record_of(self._records, program, self._rule)).findings)


def _remembered(record: Record, module: types.ModuleType) -> types.SimpleNamespace:
    """A rule that says again what it said before; within `shared_tables`, as in `judge`: rules compare nodes of one tree."""
    said = () if missing_fact(record, module.RULE.needs) else tuple(module.check(record))
    check: Callable[[Record], tuple[Finding, ...]] = lambda _record: said  # noqa: E731 - the protocol wants an attribute
    return types.SimpleNamespace(RULE=module.RULE, check=check, __name__=module.__name__, __doc__=module.__doc__)
