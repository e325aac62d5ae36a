"""One claim of each kind from the seed documents: a snippet sent over REST, and the record that the database gives back.

`tests/backprobe/capture/test_seed_claims.py` looks at every claim in the record of the same snippet. What a claim adds here
is the table or column that it reads, so one claim for each of these is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.backprobe.capture.claims import CLAIMS, holds, let_pass
from tests.backprobe.capture.seeds import Claim, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backprobe.record import Record
    from tests.support.served import Served

Program = tuple[str, frozenset[int]]
"""A snippet, and the lines whose exception it lets pass: a claim beyond a raising line needs them passed."""

GRAPH = ("len(leaves)", "isinstance(result, tuple)")
"""The expressions that read tables which no other claim reads: nodes and edges, and backward calls."""


def claim_kind(claim: Claim) -> tuple[str, str, str]:
    """Return what decides which tables a claim reads."""
    return claim.kind, claim.attribute, claim.variable if claim.variable in GRAPH else ""


CHOSEN = list({claim_kind(claim): claim for claim in reversed(CLAIMS) if claim.is_true}.values())
"""The first true claim of each kind."""


@pytest.fixture(scope="module")
def stored_seeds(stack: Served) -> Mapping[Program, tuple[dict[str, Any], Record]]:
    """Each program submitted once: its run as the API gives it, and its stored record."""
    programs = sorted({(claim.snippet, let_pass(claim)) for claim in CHOSEN}, key=str)
    answers = {}
    for snippet, passed in programs:
        run = stack.run(files=[{"path": snippet, "text": text(snippet, set(passed))}], entry=snippet)
        answers[snippet, passed] = run, stack.record(run["id"])
    return answers


@pytest.mark.parametrize("claim", CHOSEN, ids=lambda claim: f"{claim.id}: {claim.kind} {claim.attribute}".rstrip())
def test_a_claim_is_in_the_stored_record(
    stored_seeds: Mapping[Program, tuple[dict[str, Any], Record]], claim: Claim
) -> None:
    run, record = stored_seeds[claim.snippet, let_pass(claim)]
    assert run["status"] in ("succeeded", "failed"), run
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert holds(record, claim)


def test_the_api_shows_each_tensors_last_state_as_it_is_stored(
    stack: Served, stored_seeds: Mapping[Program, tuple[dict[str, Any], Record]]
) -> None:
    for run, record in stored_seeds.values():
        last = {snapshot.tensor: snapshot for snapshot in record.snapshots}
        shown = stack.items(f"/v1/runs/{run['id']}/tensors")
        assert bool(shown) == bool(record.bindings), run["entry"]
        for tensor in shown:
            state, snapshot = tensor["state"], last[tensor["tensor"]]
            for fact in ("is_leaf", "requires_grad", "retains_grad", "grad", "grad_fn", "version"):
                assert state[fact] == getattr(snapshot, fact), (run["entry"], tensor["name"], fact)
            assert (tensor["why_none"] is None) == (snapshot.grad == "present")
