"""Accuracy of the rules on faulty and correct programs, beside plain torch and `detect_anomaly`: `make accuracy`.

usage: python -m tests.corpus.accuracy [--corpus SET|all] [--only TEXT] [--try-fixes] [--write]

Prints a table by category: cases, found on the right line (strict), on a line that may be named (lenient), false alarms;
then each miss and alarm by name. With `--try-fixes` instead a table by rule of what came of each fix, on the examples of
the manuals and on the faulty programs; with `--check-gradients [CORPUS...]` what the check of gradients says: `checks.py`.
`--write` puts the tables into docs/research/accuracy-history.md.
"""

import argparse
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backprobe.rules import judge
from tests.corpus import checks
from tests.corpus.cases import CORPORA, SETS, Corpus, load_set
from tests.corpus.records import Records
from tests.corpus.score import Score, loud, scored, torch_found
from tests.corpus.trials import examples, table, tried

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "research" / "accuracy-history.md"
MARKS = ("<!-- accuracy: begin -->", "<!-- accuracy: end -->")
MARKS_OF_FIXES = ("<!-- fixes: begin -->", "<!-- fixes: end -->")


@dataclass
class Tally:
    """What was counted in one category."""

    cases: int = 0
    strict: int = 0
    lenient: int = 0
    plain: int = 0
    anomaly: int = 0
    alarms: int = 0


@dataclass
class Outcome:
    """One corpus, measured."""

    name: str
    by_category: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    scores: list[Score] = field(default_factory=list)
    alarms: list[tuple[str, list[tuple[str, int]]]] = field(default_factory=list)
    correct: int = 0
    torch_alarms: int = 0
    anomaly_alarms: int = 0


def measured(corpus: Corpus, kinds: dict[str, str], records: Records) -> Outcome:
    """Run every program of a corpus three ways."""
    outcome, started = Outcome(corpus.name), time.monotonic()
    for done, case in enumerate(corpus.cases, 1):
        score = scored(case, judge(records.of(case.bad)).findings, kinds)
        tally = outcome.by_category[case.category]
        outcome.scores.append(score)
        tally.cases += 1
        tally.strict += score.strict
        tally.lenient += score.lenient
        tally.plain += torch_found(case, records.plain(case.bad))[0]
        tally.anomaly += torch_found(case, records.plain(case.bad, anomaly=True))[0]
        tally.alarms += _correct(outcome, records, f"{case.id}, repaired", case.good)
        _progress(corpus.name, done, len(corpus.cases), started)
    for program in corpus.correct:
        outcome.by_category["correct programs"].alarms += _correct(outcome, records, program.name, program.text)
    return outcome


def _correct(outcome: Outcome, records: Records, name: str, text: str) -> int:
    """Look for alarms on a correct program; how many there are."""
    outcome.correct += 1
    outcome.torch_alarms += bool(records.plain(text))
    outcome.anomaly_alarms += bool(records.plain(text, anomaly=True))
    found = [(one.rule.code, one.location.region.start_line) for one in loud(judge(records.of(text)).findings)]
    if found:
        outcome.alarms.append((name, found))
    return len(found)


def _progress(name: str, done: int, total: int, started: float) -> None:
    if sys.stderr.isatty() or done % 20 == 0 or done == total:
        print(f"{name}: {done} of {total} cases, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def report(outcome: Outcome) -> Iterator[str]:
    """The lines of one corpus: a table by category, then what is not as it should be."""
    yield f"### {outcome.name}: {len(outcome.scores)} faulty programs, {outcome.correct} correct ones\n"
    yield "| category | cases | right line | fair line | plain torch | `detect_anomaly` | false alarms |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    total = Tally()
    for category, tally in sorted(outcome.by_category.items()):
        yield _row(category, tally)
        for key, value in vars(tally).items():
            setattr(total, key, getattr(total, key) + value)
    yield _row("**all**", total)
    yield ""
    # with no event in n trials the rate lies below 3/n at 95 % confidence (the rule of three)
    bound = f"; with none in {outcome.correct} the rate is below {3 / max(outcome.correct, 1):.1%} at 95 % confidence"
    yield (
        f"False alarms on correct programs: Backprobe {len(outcome.alarms)}, plain torch {outcome.torch_alarms}, "
        f"`detect_anomaly` {outcome.anomaly_alarms}, of {outcome.correct}{bound if not outcome.alarms else ''}."
    )
    yield from _exceptions(outcome)


def _row(name: str, tally: Tally) -> str:
    return f"| {name} | {tally.cases} | {tally.strict} | {tally.lenient} | {tally.plain} | {tally.anomaly} | {tally.alarms} |"


def _exceptions(outcome: Outcome) -> Iterator[str]:
    missed = [score for score in outcome.scores if not score.strict]
    if missed:
        yield "\nNot on the right line: " + "; ".join(_miss(score) for score in missed) + "."
    if outcome.alarms:
        yield "\nAlarms: " + "; ".join(f"{name} {_said(found)}" for name, found in outcome.alarms) + "."
    others = [score for score in outcome.scores if score.others]
    if others:
        yield "\nAlso said of faulty programs: " + "; ".join(f"{s.case.id} {_said(s.others)}" for s in others) + "."


def _miss(score: Score) -> str:
    how = "fair line" if score.lenient else "kind only" if score.kind else "silent"
    return f"{score.case.id} ({score.case.kind}: {how})"


def _said(found: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{code} line {line}" for code, line in found)


def main() -> int:
    """Measure, print, and write if asked."""
    if "--check-gradients" in sys.argv:
        return checks.main([one for one in sys.argv[1:] if one != "--check-gradients"])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", choices=(*SETS, "all"), default="all")
    parser.add_argument("--only", default="", help="cases whose id or kind contains this")
    parser.add_argument("--try-fixes", action="store_true", help="try the fixes of what is found, in place of the rest")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/research/accuracy-history.md")
    asked = parser.parse_args()
    kinds = tomllib.loads((CORPORA / "kinds.toml").read_text())
    corpora = [load_set(name) for name in SETS if asked.corpus in (name, "all")]
    if asked.only:
        corpora = [_only(corpus, asked.only) for corpus in corpora]
    with Records() as records:
        if asked.try_fixes:
            lines = list(table(tried(_faulty(corpora, asked.only), records)))
        else:
            lines = [line for corpus in corpora for line in [*report(measured(corpus, kinds, records)), ""]]
    print("\n".join(lines))
    if asked.write:
        _write(lines, MARKS_OF_FIXES if asked.try_fixes else MARKS)
    return 0


def _faulty(corpora: Iterable[Corpus], only: str) -> dict[str, str]:
    """The programs whose fixes are tried: the manuals' examples and the corpora's faulty ones."""
    found = {name: text for name, text in examples().items() if only in name}
    return found | {f"{corpus.name} {case.id}": case.bad for corpus in corpora for case in corpus.cases}


def _only(corpus: Corpus, text: str) -> Corpus:
    chosen = tuple(case for case in corpus.cases if text in case.id or text in case.kind)
    correct = tuple(program for program in corpus.correct if text in program.name)
    return Corpus(name=corpus.name, cases=chosen, correct=correct)


def _write(lines: list[str], marks: tuple[str, str]) -> None:
    head, _, rest = DOCUMENT.read_text().partition(marks[0])
    _old, _, tail = rest.partition(marks[1])
    DOCUMENT.write_text(f"{head}{marks[0]}\n\n" + "\n".join(lines).rstrip() + f"\n\n{marks[1]}{tail}")


if __name__ == "__main__":
    sys.exit(main())
