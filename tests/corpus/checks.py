"""What the check of gradients says of corpora: `python -m tests.corpus.checks [CORPUS...]`.

Every program runs with the check on, each in a fork of one warm process. A false finding is a leaf of a correct program
or a twin whose gradient is called wrong with nothing to explain it; the share of `agrees` is of all leaves that rows
tell of. `WRONG` lists, found by hand, the faulty programs whose gradient is not the derivative of their loss.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backprobe.record import GradientCheck, Record, loads
from tests.corpus.cases import OWN, WITH_SIDECARS, Corpus, own, with_sidecars

_SECONDS: Final = 150


@dataclass(frozen=True, slots=True)
class Told:
    """What the check said of one program.

    Attributes:
        role: bad, good or clean. kind: of the mistake; empty: of none. record: None: none was left.
    """

    corpus: str
    name: str
    role: str
    kind: str
    record: Record | None

    @property
    def rows(self) -> tuple[GradientCheck, ...]:
        """Of its leaves."""
        return () if self.record is None else self.record.gradient_checks

    @property
    def flagged(self) -> list[GradientCheck]:
        """Those that are called wrong."""
        return [row for row in self.rows if is_flagged(row)]


def is_flagged(row: GradientCheck) -> bool:
    """The gradient is called wrong: nothing explains it, or a mistake does."""
    return row.verdict in ("cut", "factor", "differs") and (row.explained_by is None or row.cause is not None)


def _corpus(name: str) -> Corpus:
    if name in WITH_SIDECARS:
        return with_sidecars(OWN / name)
    if name != "own":
        raise SystemExit(f"there is no corpus {name!r}: own, {', '.join(WITH_SIDECARS)}")
    return own()


def programs(corpora: list[str], every: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Corpus, name, role, kind and text of each program."""
    for corpus in map(_corpus, corpora):
        for number, case in enumerate(corpus.cases):
            if corpus.name != "own" or number % every == 0:
                yield corpus.name, case.id, "bad", case.kind, case.bad
                yield corpus.name, case.id, "good", case.kind, case.good
        for number, (name, text) in enumerate(sorted(corpus.clean.items())):
            if corpus.name != "own" or number % every == 0:
                yield corpus.name, name, "clean", "", text


def checked(text: str, folder: Path, name: str) -> Record | None:
    """Run a program with the check on, in a fork; its record."""
    path = folder / f"{name}.bprec"
    child = os.fork()
    if child == 0:
        _run(text, path)
    until = time.monotonic() + _SECONDS
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.02)
    data = path.read_bytes() if path.exists() else b""
    return loads(data) if len(data) > 5 else None


def _run(text: str, path: Path) -> None:
    from backprobe.capture import Options, run_files
    from backprobe.record.encoding.codec import MAGIC

    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = 1
    try:
        with path.open("wb") as record:
            record.write(MAGIC)

            def sink(frames: bytes) -> None:
                record.write(frames)

            run_files({"snippet.py": text}, "snippet.py", (), Options(seed=0, check=True), sink)
            code = 0
    finally:
        os._exit(code)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["public", "second"])
    parser.add_argument("--every", type=int, default=5, help="of the own corpus every N-th program")
    parser.add_argument("--role", choices=("bad", "good", "clean"))
    parser.add_argument("--only", default="", help="programs whose name has this in it")
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    from backprobe.capture import warm

    warm()
    chosen = [one for one in programs(args.corpora, args.every) if args.role in (None, one[2]) and args.only in one[1]]
    results: list[Told] = []
    with tempfile.TemporaryDirectory() as kept, ThreadPoolExecutor(2) as pool:

        def one(given: tuple[int, tuple[str, str, str, str, str]]) -> Told:
            number, (corpus, name, role, kind, text) = given
            return Told(corpus, name, role, kind, checked(text, Path(kept), str(number)))

        for told in pool.map(one, enumerate(chosen)):
            results.append(told)
            _print(told, verbose=args.v)
    _summary(results)


def _print(told: Told, *, verbose: bool) -> None:
    counts = Counter(row.verdict for row in told.rows)
    mark = "FLAG" if told.flagged else "-"
    print(mark, told.corpus, told.role, told.name, told.kind, dict(counts), flush=True)
    whys = {row.why for row in told.rows if row.why}
    for why in whys:
        print("     why:", why)
    for row in (told.rows if verbose else told.flagged)[:4]:
        print(
            f"     {row.step} {row.tensor} {row.verdict} {row.precision} n={row.numeric} w={row.numeric_wide} "
            f"frozen={row.frozen} arrived={row.arrived} used={row.used} tol={row.tolerance} f={row.factor} "
            f"{row.explained_by} {row.cause} {row.function} {[one.function for one in row.cuts]}"
        )
    if told.record is not None and told.record.end is not None and told.record.end.own_errors:
        print("     OWN ERROR", (told.record.end.own_error or "")[-800:])
    sys.stdout.flush()


def _summary(results: list[Told]) -> None:
    for role in ("clean", "good", "bad"):
        mine = [told for told in results if told.role == role]
        rows = [row for told in mine for row in told.rows]
        counts = Counter(_name(row) for row in rows)
        print(role, len(mine), "programs,", sum(1 for told in mine if told.rows), "with rows,", dict(counts))
        print("  flagged programs:", sum(1 for told in mine if told.flagged))


def _name(row: GradientCheck) -> str:
    if row.verdict in ("cut", "factor", "differs"):
        return "flagged" if is_flagged(row) else "explained"
    return row.verdict


if __name__ == "__main__":
    main()
