"""The mutator: what it changes, that it puts it back, and that a condition which no test needs is found.

And the faults that are planted by hand: that each still has its place.
"""

import ast

import pytest

from backprobe.rules.wiring import step_without_gradient
from tests.corpus.records import Records
from tests.mutation.mutants import mutants, switched_on
from tests.mutation.own_tests import trials
from tests.mutation.planted import faults, planted
from tests.mutation.survivors import survival
from tests.support.resources import ROOT

SOURCE = """
MOST: Final = 20
if TYPE_CHECKING:
    import x
RULE = Rule(thresholds={"ratio": 0.5})
def check(record):
    if a and not b:
        pass
    while not b:
        pass
    c = 1 if d else [e for e in f if g if h]
    return 3 <= k and n == 4
"""
CHANGED = {
    (2, "`20` is 200"), (2, "`20` is 2"), (5, "`0.5` is 5.0"), (5, "`0.5` is 0.05"),
    (7, "the opposite of `a and (not b)`"), (7, "without `a`"), (7, "without `not b`"), (9, "the opposite of `not b`"),
    (11, "the opposite of `d`"), (11, "the opposite of `g`"), (11, "the opposite of `h`"),
    (12, "`3` is 30"), (12, "`3` is 0"), (12, "without `3 <= k`"), (12, "without `n == 4`"),
}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    with Records(tmp_path_factory.mktemp("records")) as opened:
        yield opened


def test_every_condition_operand_and_threshold_is_changed_once_and_put_back() -> None:
    tree = ast.parse(SOURCE)
    before = ast.unparse(tree)
    found = mutants(tree)
    assert {(row.line, row.change) for row in found} == CHANGED
    assert len(found) == len(CHANGED)
    seen = set()
    for mutant in found:
        with switched_on(mutant):
            seen.add(ast.unparse(ast.fix_missing_locations(tree)))
        assert ast.unparse(tree) == before
    assert len(seen) == len(found)
    assert before not in seen


@pytest.mark.usefixtures("fresh_python")
def test_a_mutant_survives_exactly_while_no_test_needs_its_condition(records) -> None:
    tests = trials(step_without_gradient)
    (example,) = [test for test in tests if test.about == "Example"]
    kept = survival(records, step_without_gradient, tests)
    fewer = survival(records, step_without_gradient, [example])
    none = survival(records, step_without_gradient, [])
    told = [{(survivor.line, survivor.change) for survivor in of.survivors} for of in (kept, fewer, none)]
    assert kept.faults == ()
    assert told[0] < told[1] < told[2]
    assert len(told[2]) == kept.mutants
    assert any("without `len(lacking) == len(steps)`" in change for _line, change in told[1] - told[0])


@pytest.mark.usefixtures("fresh_python")
def test_a_rule_that_fails_its_own_tests_is_told_apart(records) -> None:
    (wrong,) = [trial for trial in trials(step_without_gradient) if trial.about == "Use instead"]
    moved = type(wrong)(about="moved", program=wrong.program, marks=(("BP707", 1),))
    told = survival(records, step_without_gradient, [moved])
    assert told.faults == ("moved: said [], not [('BP707', 1)]",)
    assert len(told.survivors) == told.mutants


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_a_planted_fault_changes_one_place_and_names_tests_that_are_there(fault) -> None:
    source = (ROOT / fault.file).read_text()
    changed = planted(fault, source)
    compile(changed, fault.file, "exec")
    assert changed != source
    assert all((ROOT / path).exists() for path in fault.tests)
    with pytest.raises(ValueError, match="0 times"):
        planted(fault, changed.replace(fault.text, ""))
