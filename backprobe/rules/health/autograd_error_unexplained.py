"""BP901 autograd-error-unexplained: autograd raised, and no rule could prove the cause from the record.

What it finds:
    The program ended with one of autograd's known errors, and no rule found what led to it. The finding stands at the
    statement where the error surfaced, with what the record knows of it: the call, its root, the node that ran.

Why it matters:
    The program stopped, and Backprobe owes the reason. What it cannot prove it does not guess.

Blind spots:
    Errors that are none of autograd's (shapes, dtypes, devices, memory, a wrong type) give no finding: the run itself
    is shown as failed. Where rules were deselected this one does not speak: the cause may be theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from backprobe.record.families import family_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record
    from backprobe.rules.framework.finding import Evidence, Finding

RULE = Rule(
    name="autograd-error-unexplained",
    code="BP901",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised",),
)

NOT_AUTOGRAD: Final = frozenset(
    {"dtypes-differ", "shapes-differ", "devices-differ", "out-of-memory", "function-gave-no-tensor", "empty-inputs"}
)
"""Families of errors that their own text explains: a wrong argument, no mistake of gradients."""

MOST_TEXT: Final = 160
"""Characters of torch's message that are shown; it is a stranger's text."""


def unexplained(record: Record, found: Iterable[Finding]) -> list[Finding]:
    """The finding for an exception of autograd's that ended the program, if none of the others is an error."""
    last = next((row for row in record.raised if record.end is not None and row.n == record.end.exception), None)
    if last is None or last.site is None or not _has_place(record, last.site):
        return []
    family = last.family or family_of(last.message)
    if family is None or family in NOT_AUTOGRAD or any(one.level == "error" for one in found):
        return []
    return [_finding(record, last, last.site, family)]


def _has_place(record: Record, site: int) -> bool:
    """The statement and its source are in the record; a truncated one may lack them."""
    row = lookup(record).sites.get(site)
    return row is not None and row.source in lookup(record).sources


def _finding(record: Record, raised: Raised, site: int, family: str) -> Finding:
    index = lookup(record)
    call = None if raised.call is None else index.calls.get(raised.call)
    node = None if raised.node is None else index.nodes.get(raised.node)
    root = None if call is None or not call.roots else call.roots[0].name
    known = [] if root is None else [f"the root was `{root}`"]
    known += [] if node is None else [f"`{node.type}` was running"]
    text = " ".join(raised.message.split())
    evidence: dict[str, Evidence] = {"family": family, "exception": raised.type, "call": raised.call}
    evidence.update(raised.facts)
    return told(
        record,
        RULE,
        site,
        (
            f"{raised.type} from autograd: {text[:MOST_TEXT]}{'...' if len(text) > MOST_TEXT else ''}",
            f"No rule proves its cause from the record{': ' + ', '.join(known) if known else ''}.",
            "`backprobe show` tells what the tensors of this statement were.",
        ),
        binding=root or family,
        moments=[raised.moment or 0],
        related=(
            ("this node was made here", None if node is None else node.site),
            ("in this backward call", None if call is None or call.site == site else call.site),
        ),
        evidence=evidence,
        calls=[] if call is None else [call.call],
    )
