"""Every claim of the seed documents, from a snippet sent over REST to the record that the database gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.backprobe.capture.claims import CLAIMS, holds, let_pass, really
from tests.backprobe.capture.seeds import Claim, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backprobe.record import Record
    from tests.support.served import Served

Program = tuple[str, frozenset[int]]
"""A snippet, and the lines whose exception it lets pass: a claim beyond a raising line needs them passed."""


@pytest.fixture(scope="module")
def stored(stack: Served) -> Mapping[Program, tuple[dict[str, Any], Record]]:
    """Each program submitted once: its run as the API gives it, and its stored record."""
    programs = sorted({(claim.snippet, let_pass(claim)) for claim in CLAIMS}, key=str)
    answers = {}
    for snippet, passed in programs:
        run = stack.run(files=[{"path": snippet, "text": text(snippet, set(passed))}], entry=snippet)
        answers[snippet, passed] = run, stack.record(run["id"])
    return answers


def _of(stored: Mapping[Program, tuple[dict[str, Any], Record]], claim: Claim) -> Record:
    run, record = stored[claim.snippet, let_pass(claim)]
    assert run["status"] in ("succeeded", "failed"), run
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    return record


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.is_true], ids=lambda claim: claim.id)
def test_a_true_claim_is_in_the_stored_record(
    stored: Mapping[Program, tuple[dict[str, Any], Record]], claim: Claim
) -> None:
    assert holds(_of(stored, claim), claim)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if not claim.is_true], ids=lambda claim: claim.id)
def test_of_a_false_claim_the_stored_record_shows_what_torch_does(
    stored: Mapping[Program, tuple[dict[str, Any], Record]], claim: Claim
) -> None:
    record = _of(stored, claim)
    assert not holds(record, claim)
    assert really(record, claim)


def test_the_api_shows_each_tensors_last_state_as_it_is_stored(
    stack: Served, stored: Mapping[Program, tuple[dict[str, Any], Record]]
) -> None:
    for run, record in stored.values():
        last = {snapshot.tensor: snapshot for snapshot in record.snapshots}
        shown = stack.items(f"/v1/runs/{run['id']}/tensors")
        assert bool(shown) == bool(record.bindings), run["entry"]
        for tensor in shown:
            state, snapshot = tensor["state"], last[tensor["tensor"]]
            for fact in ("is_leaf", "requires_grad", "retains_grad", "grad", "grad_fn", "version"):
                assert state[fact] == getattr(snapshot, fact), (run["entry"], tensor["name"], fact)
            assert (tensor["why_none"] is None) == (snapshot.grad == "present")
