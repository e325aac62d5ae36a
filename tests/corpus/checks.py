"""What the check of gradients says of corpora: `python -m tests.corpus.checks [CORPUS...]`.

Every program runs with the check on, each in a fork of one warm process. A false finding is a leaf of a correct program
or a twin whose gradient is called wrong with nothing to explain it, or a rule of the family `truth` that tells, or one
that calls a cut or a hook a mistake that the check measured; the share that agrees or is explained is of all rows. `wrong_gradients.toml` lists, judged by hand, the faulty programs whose
gradient is not the derivative of their loss.

    python -m tests.corpus.checks --wrong threads     those of the list alone: how many are flagged
    python -m tests.corpus.checks --every 4 own       every fourth program of the corpus, in its order
    python -m tests.corpus.checks --role good --role clean own      its correct programs and twins
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backprobe.record import GradientCheck, Record, loads
from backprobe.rules import judge
from backprobe.rules.analysis.gradients.measured_cuts import checked_rows
from backprobe.tiers import GradientCheckMode
from tests.corpus.cases import CORPORA, SETS, load_set

_SECONDS: Final = 150
_CODES: Final = ("BP910", "BP911")
WRONG: Final = "wrong"
"""The role of a faulty program whose gradient is wrong, by hand."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the check said of one program.

    Attributes:
        role: wrong, bad (another mistake), good or clean. kind: of the mistake; empty: of none. record: None: none was left.
        causes: Of a row of the check the rule that says of the cut or the hook in it that it is a mistake.
    """

    corpus: str
    name: str
    role: str
    kind: str
    record: Record | None
    causes: Mapping[int, str]

    @property
    def rows(self) -> tuple[GradientCheck, ...]:
        """Of its leaves."""
        return () if self.record is None else self.record.gradient_checks

    @property
    def flagged(self) -> list[GradientCheck]:
        """Those that are called wrong: by the check alone, or with a rule that judges the cut that it measured."""
        return [row for row in self.rows if is_flagged(row) or row.n in self.causes]

    @property
    def is_false(self) -> bool:
        """It is correct, and called wrong."""
        if self.role not in ("good", "clean") or self.record is None:
            return False
        return bool(self.flagged) or any(one.rule.code in _CODES for one in judge(self.record).findings)


def is_flagged(row: GradientCheck) -> bool:
    """The gradient is called wrong: nothing explains it, or a mistake does."""
    return row.verdict in ("cut", "factor", "differs") and (row.explained_by is None or row.cause is not None)


def wrong_gradients() -> dict[str, dict[str, str]]:
    """Corpus -> name of a faulty program -> what makes its gradient wrong: judged by hand."""
    return tomllib.loads((CORPORA / "wrong_gradients.toml").read_text())


def programs(corpora: list[str], every: int, *, wrong: bool = False) -> Iterator[tuple[str, str, str, str, str]]:
    """Corpus, name, role, kind and text of each program.

    Args:
        every: Of each corpus every N-th case and correct program. wrong: only those whose gradient is wrong.
    """
    listed = wrong_gradients()
    for corpus in map(load_set, corpora):
        named = listed.get(corpus.name, {})
        for case in [one for one in corpus.cases if one.id in named] if wrong else corpus.cases[::every]:
            yield corpus.name, case.id, WRONG if case.id in named else "bad", case.kind, case.bad
            if not wrong:
                yield corpus.name, case.id, "good", case.kind, case.good
        for program in [] if wrong else sorted(corpus.correct, key=lambda program: program.name)[::every]:
            yield corpus.name, program.name, "clean", "", program.text


def checked(text: str, folder: Path, name: str, mode: GradientCheckMode) -> Record | None:
    """Run a program with the check on, in a fork; its record."""
    path = folder / f"{name}.bprec"
    child = os.fork()
    if child == 0:
        _run(text, path, mode)
    until = time.monotonic() + _SECONDS
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.02)
    data = path.read_bytes() if path.exists() else b""
    return loads(data) if len(data) > 5 else None


def _run(text: str, path: Path, mode: GradientCheckMode) -> None:
    from backprobe.capture import Options, run_files
    from backprobe.record.encoding.codec import MAGIC

    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = 1
    try:
        os.chdir(tempfile.mkdtemp(dir=path.parent))  # what a program writes is not left where this was started
        with path.open("wb") as record:
            record.write(MAGIC)

            def sink(frames: bytes) -> None:
                record.write(frames)

            run_files({"snippet.py": text}, "snippet.py", (), Options(seed=0, check=mode), sink)
            code = 0
    finally:
        os._exit(code)


def main(given: Sequence[str] | None = None) -> int:
    """Run and print; 1 if a correct program was called wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["public", "second"], help=f"of {', '.join(SETS)}")
    parser.add_argument("--every", type=int, default=1, help="of each corpus every N-th case and correct program")
    parser.add_argument("--wrong", action="store_true", help="only those whose gradient is wrong by the list")
    parser.add_argument("--role", action="append", choices=("wrong", "bad", "good", "clean"), help="may be repeated")
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("--brief", action="store_true", help="check as a run does that was not asked to")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args(given)
    if unknown := [name for name in args.corpora if name not in SETS]:
        parser.error(f"there is no corpus {unknown[0]!r}: {', '.join(SETS)}")
    from backprobe.capture import warm

    warm()
    chosen = [
        one
        for one in programs(args.corpora, args.every, wrong=args.wrong)
        if one[2] in (args.role or (one[2],)) and args.only in one[1]
    ]
    results: list[Told] = []
    with tempfile.TemporaryDirectory() as kept, ThreadPoolExecutor(args.jobs) as pool:

        def one(given: tuple[int, tuple[str, str, str, str, str]]) -> Told:
            number, (corpus, name, role, kind, text) = given
            record = checked(text, Path(kept), str(number), "brief" if args.brief else "full")
            causes = {} if record is None else checked_rows(judge(record).findings)
            return Told(corpus, name, role, kind, record, {row: one.rule.code for row, one in causes.items()})

        for told in pool.map(one, enumerate(chosen)):
            results.append(told)
            _print(told, verbose=args.v)
    _summary(results)
    return int(any(told.is_false for told in results))


def _print(told: Told, *, verbose: bool) -> None:
    counts = Counter(row.verdict for row in told.rows)
    mark = "FLAG" if told.flagged else "-"
    print(mark, told.corpus, told.role, told.name, told.kind, dict(counts), flush=True)
    for why in {row.why for row in told.rows if row.why}:
        print("     why:", why)
    for row in told.rows if verbose or told.role == WRONG else told.flagged[:4]:
        print(
            f"     {row.step} {row.tensor} {row.verdict} {row.precision} n={row.numeric} w={row.numeric_wide} "
            f"frozen={row.frozen} arrived={row.arrived} used={row.used} tol={row.tolerance} f={row.factor} "
            f"{row.explained_by} {row.cause} {row.function} {[one.function for one in row.cuts]} {told.causes.get(row.n)}"
        )
    if told.record is not None and told.record.end is not None and told.record.end.own_errors:
        print("     OWN ERROR", (told.record.end.own_error or "")[-800:])
    sys.stdout.flush()


def _summary(results: list[Told]) -> None:
    """One table: a row for each corpus."""
    print(
        "| corpus | wrong by hand | flagged | by the check alone | correct | with rows | agrees | explained | rough | not checked | false |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    names = list(dict.fromkeys(told.corpus for told in results))
    for name in [*names, "all"] if len(names) > 1 else names:
        mine = [told for told in results if name in ("all", told.corpus)]
        wrong = [told for told in mine if told.role == WRONG]
        right = [told for told in mine if told.role in ("good", "clean")]
        rows = Counter(_name(row, told.causes) for told in right for row in told.rows)
        cells = [
            name, len(wrong), sum(bool(told.flagged) for told in wrong),
            sum(any(map(is_flagged, told.rows)) for told in wrong), len(right), sum(bool(told.rows) for told in right),
            *(rows[one] for one in ("agrees", "explained", "rough", "not-checked")), sum(told.is_false for told in right),
        ]  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


def _name(row: GradientCheck, causes: Mapping[int, str]) -> str:
    if row.verdict in ("cut", "factor", "differs"):
        return "flagged" if is_flagged(row) or row.n in causes else "explained"
    return row.verdict


if __name__ == "__main__":
    sys.exit(main())
