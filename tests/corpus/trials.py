"""Fixes of the rules, tried on programs: for `make accuracy ARGS="--try-fixes"`.

Each finding at warning or above that has a fix with edits is taken alone; the program runs again with the fix in it, and
`backprobe.rules.trials` says what came of it.
"""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from backprobe.rules import RULES, judge, manual
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.finding import Trial
from backprobe.rules.framework.rule import Safety
from backprobe.rules.testing import wants_check
from backprobe.rules.trials import compared, shown
from tests.corpus.records import Records
from tests.corpus.score import loud


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One fix that was tried."""

    program: str
    code: str
    line: int
    safety: Safety
    trial: Trial


@dataclass
class Fixes:
    """What came of the fixes of all programs.

    Attributes:
        tried: Each once.
    """

    tried: list[Tried] = field(default_factory=list)

    def by_rule(self) -> dict[str, Counter[str]]:
        """Verdicts, by the code of the rule."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for one in self.tried:
            found[one.code][one.trial.verdict] += 1
        return dict(sorted(found.items()))


def examples() -> dict[str, str]:
    """The examples of the manuals, by code; those of checked gradients apart, for their records hold no check here."""
    return {
        f"{one.RULE.code} example": manual(one.RULE.code).of("Example")[0].text for one in RULES if not wants_check(one)
    }


def tried(programs: Mapping[str, str], records: Records) -> Fixes:
    """Try every fix of every program, each program under its name."""
    fixes, started = Fixes(), time.monotonic()
    for done, (name, text) in enumerate(programs.items(), 1):
        fixes.tried += _of_program(name, text, records)
        if done % 20 == 0 or done == len(programs):
            print(
                f"fixes: {done} of {len(programs)} programs, {time.monotonic() - started:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return fixes


def _of_program(name: str, text: str, records: Records) -> Iterator[Tried]:
    record = records.of(text)
    judgement = judge(record)
    before = shown(record, judgement)
    for finding in loud(judgement.findings):
        for fix in finding.fixes:
            if not fix.edits:
                continue
            again = records.of(edited(text, fix.edits))
            trial = compared(finding, fix.edits, before, shown(again, judge(again)))
            line = finding.location.region.start_line
            yield Tried(program=name, code=finding.rule.code, line=line, safety=fix.safety, trial=trial)


def table(fixes: Fixes) -> Iterator[str]:
    """A table by rule, then each fix that was not confirmed by name."""
    yield "| rule | fixes tried | confirmed | changes values | insufficient | breaks |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    total: Counter[str] = Counter()
    for code, counted in fixes.by_rule().items():
        total += counted
        yield _row(code, counted)
    yield _row("**all**", total)
    yield ""
    safe = [one for one in fixes.tried if one.safety == "safe"]
    held = sum(one.trial.verdict == "confirmed" for one in safe)
    yield f"Of {len(safe)} fixes that are marked safe, {held} are confirmed."
    rest = [one for one in fixes.tried if one.trial.verdict in {"insufficient", "breaks"}]
    if rest:
        yield (
            "\nNot confirmed: "
            + "; ".join(
                f"{one.program} {one.code} line {one.line} ({one.trial.verdict}: {one.trial.why})" for one in rest
            )
            + "."
        )
    wrong = [one for one in safe if one.trial.verdict == "changes-values"]
    if wrong:
        yield (
            "\nSafe, and the first loss changes: "
            + "; ".join(f"{one.program} {one.code} line {one.line} ({one.trial.why})" for one in wrong)
            + "."
        )


def _row(name: str, counted: Counter[str]) -> str:
    cells = [counted.total(), *(counted[word] for word in ("confirmed", "changes-values", "insufficient", "breaks"))]
    return f"| {name} | {' | '.join(map(str, cells))} |"
