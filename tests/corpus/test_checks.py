"""The list of wrong gradients, and what counts in the measuring of the check of gradients."""

import pytest

from backprobe.record import GradientCheck
from tests.corpus import checks
from tests.corpus.cases import SETS

NOT_READ = {"round5", "round6", "round7", "round8", "round9", "round10", "round11", "third"}
"""Sets whose programs nobody has judged by reading for what their gradients should be."""


def test_every_program_of_the_list_is_a_case_of_its_corpus() -> None:
    listed = checks.wrong_gradients()
    assert set(listed) == set(SETS) - NOT_READ
    found = [(one[0], one[1], one[2]) for one in checks.programs(sorted(listed), 1, wrong=True)]
    assert sorted(found) == sorted((corpus, name, "wrong") for corpus, named in listed.items() for name in named)


def test_a_case_of_the_list_is_measured_as_one_and_its_twin_as_correct() -> None:
    roles = {(name, role) for _, name, role, _, _ in checks.programs(["second"], 1)}
    assert {("cf-wrong-formula", "wrong"), ("cf-wrong-formula", "good"), ("ve-dead-relu", "bad")} <= roles
    assert ("cf-wrong-formula", "bad") not in roles


@pytest.mark.parametrize(
    ("row", "flagged"),
    [
        (GradientCheck(n=0, tensor=0, verdict="differs"), True),
        (GradientCheck(n=0, tensor=0, verdict="factor", factor=2.0), True),
        (GradientCheck(n=0, tensor=0, verdict="cut", cause="cut", explained_by="`detach`"), True),
        (GradientCheck(n=0, tensor=0, verdict="differs", explained_by="clipping"), False),
        (GradientCheck(n=0, tensor=0, verdict="agrees"), False),
        (GradientCheck(n=0, tensor=0, verdict="rough"), False),
    ],
)
def test_a_row_counts_as_flagged_where_a_mistake_or_nothing_explains_it(row: GradientCheck, flagged: bool) -> None:
    assert checks.is_flagged(row) == flagged
