"""The CUDA snippets of the seed documents: each claim about their twin holds of the record made on the device.

On the stand-in the twin itself runs, in which `.cuda()` is another copy to which torch answers alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Final

import torch

from backprobe.capture import run_source
from backprobe.record import Record
from tests.backprobe.capture.claims import CLAIMS, holds, let_pass
from tests.backprobe.capture.seeds import Claim, text
from tests.gpu.place import Place, Row, expect, rows

SNIPPETS: Final = {
    "s000_cuda_leaf.py": ("s000_cuda_leaf_cuda.py", 1),
    "s003_full_simple.py": ("s003_full_simple_cuda.py", 0),
}
"""The snippets by their twin, and how many lines earlier a statement is there."""


def prove(place: Place) -> Iterator[Row]:
    """One row for each claim."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    for claim in CLAIMS:
        if claim.snippet in SNIPPETS:
            about = f"{claim.variable}.{claim.attribute}" if claim.attribute else claim.variable or claim.kind
            yield f"{claim.id} {claim.snippet}:{claim.line} {about}", partial(_check, place, claim)


@cache
def _recorded(snippet: str, suppressed: frozenset[int]) -> Record:
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("default")
            return run_source(text(snippet, set(suppressed)))
    finally:
        torch.set_warn_always(False)


def _check(place: Place, claim: Claim) -> str:
    passed, snippet = let_pass(claim), claim.snippet
    if place.is_cuda:
        snippet, earlier = SNIPPETS[snippet]
        claim, passed = replace(claim, line=claim.line - earlier), frozenset(line - earlier for line in passed)
    record = _recorded(snippet, passed)
    expect(record.end is not None, "the record has no end")
    expect(record.end is None or record.end.own_errors == 0, str(record.end and record.end.own_error))
    expect(holds(record, claim) == claim.is_true, f"the record says otherwise than {claim.expected!r}")
    if place.is_cuda:
        expect(any(row.device.startswith("cuda") for row in record.tensors), "no tensor of it lay on the device")
    return "" if place.is_cuda else f"by its twin {snippet}"
