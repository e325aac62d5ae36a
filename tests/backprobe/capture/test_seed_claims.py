"""Every claim of the seed documents, checked against the record of the snippet alone."""

from __future__ import annotations

import functools
import warnings

import pytest
import torch

from backprobe.capture import run_source
from backprobe.record import Record
from tests.backprobe.capture.claims import CLAIMS, holds, let_pass, really
from tests.backprobe.capture.seeds import Claim, text


@functools.cache
def recorded(snippet: str, suppressed: frozenset[int]) -> Record:
    """The record of a snippet, with those statements' exceptions let pass."""
    torch.set_warn_always(True)  # some of torch's warnings come once per process
    try:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("default")
            return run_source(text(snippet, set(suppressed)))
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.id}-{claim.snippet}-{claim.line}")
def test_a_claim_of_a_seed_is_in_the_record_as_torch_has_it(claim: Claim) -> None:
    record = recorded(claim.snippet, let_pass(claim))
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert holds(record, claim) == claim.is_true


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if not claim.is_true], ids=lambda claim: claim.id)
def test_of_a_false_claim_the_record_has_what_torch_really_does(claim: Claim) -> None:
    assert really(recorded(claim.snippet, let_pass(claim)), claim)


def test_every_claim_is_looked_at() -> None:
    assert (len(CLAIMS), sum(claim.is_true for claim in CLAIMS)) == (261, 253)
