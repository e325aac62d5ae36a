"""Mutants of a rule that no test fails."""

import ast
import signal
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backprobe.record import Record
from backprobe.rules.framework.tables import shared_tables
from tests.corpus.records import Records
from tests.mutation.lacking import lacking
from tests.mutation.mutants import Mutant, mutants, switched_on
from tests.mutation.own_tests import Court, Trial, record_of, trials

SECONDS = 5.0
"""CPU time for one verdict, a hundred times the usual: a mutant that needs more is taken to run forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """What came of one rule's mutants."""

    code: str
    name: str
    mutants: int
    survivors: tuple[Mutant, ...]
    faults: tuple[str, ...]
    """What the rule's own tests say of the rule as it stands: its mutants are not tried then."""


class _Circle(Exception):
    """A mutant did not come to its end."""


def survival(records: Records, module: types.ModuleType, tests: Sequence[Trial] | None = None) -> Survival:
    """Try every mutant of a rule.

    Args:
        records: Of programs.
        module: The rule.
        tests: What a mutant must fail one of; the rule's own tests by default.
    """
    rule = module.RULE
    tree = ast.parse(Path(str(module.__file__)).read_text())
    alive = mutants(tree)
    number, faults = len(alive), []
    for trial in trials(module) if tests is None else tests:
        court = Court(records, trial, module)
        with court.in_session():
            wrong = court.fault(module)
            if wrong is not None:
                faults.append(f"{trial.about}: {wrong}")
            else:
                alive = [mutant for mutant in alive if _survives(court, module, tree, mutant)]
        if wrong is None and trial.marks:
            alive = _unbroken(record_of(records, trial.program, module), module, tree, alive)
    return Survival(
        code=rule.code, name=rule.name, mutants=number, survivors=tuple(alive), faults=tuple(faults)
    )  # fmt: skip


def _survives(court: Court, module: types.ModuleType, tree: ast.Module, mutant: Mutant) -> bool:
    try:
        with switched_on(mutant), _limited():
            return court.fault(_loaded(module, tree)) is None
    except Exception:  # a mutant that cannot be loaded or judged with has failed its tests
        return False


def _unbroken(record: Record, module: types.ModuleType, tree: ast.Module, alive: list[Mutant]) -> list[Mutant]:
    """The mutants that judge the record without breaking on it whatever it lacks, as the rule itself does."""
    left: list[tuple[Mutant, types.ModuleType]] = []
    for mutant in alive:
        with switched_on(mutant):
            left.append((mutant, _loaded(module, tree)))
    for variant in lacking(record):
        if not left:
            break
        with shared_tables(variant.record):
            list(module.check(variant.record))
            left = [(mutant, mutated) for mutant, mutated in left if not _breaks(variant.record, mutated)]
    return [mutant for mutant, _mutated in left]


def _breaks(record: Record, mutated: types.ModuleType) -> bool:
    try:
        with _limited():
            list(mutated.check(record))
    except Exception:
        return True
    return False


def _loaded(module: types.ModuleType, tree: ast.Module) -> types.ModuleType:
    made = types.ModuleType(module.__name__)
    made.__file__ = module.__file__
    exec(compile(ast.fix_missing_locations(tree), str(module.__file__), "exec"), made.__dict__)
    return made


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Circle

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
