"""Were the flags of a backward call needed? What became of the graph that it kept, or made."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record


def ran_whole(record: Record) -> bool:
    """The program came to its end, and all of its backward calls are recorded: what is not there did not happen."""
    return record.end is not None and record.end.ending != "raised" and not record.truncated


@table
def calls_by_site(record: Record) -> dict[int, list[BackwardCall]]:
    """The calls by the statement of the user's files that made them; those inside torch's functions are left out."""
    found: defaultdict[int, list[BackwardCall]] = defaultdict(list)
    for call in record.backward_calls:
        if call.site is not None and call.entry in ("Tensor.backward", "autograd.backward", "autograd.grad"):
            found[call.site].append(call)
    return dict(found)


def is_walked_again(record: Record, call: BackwardCall) -> bool:
    """A later call met a node of this one's graph that saved something: leaves' own nodes and views need no graph."""
    index = lookup(record)
    mine = reaches(record)[call.call].met
    saving = {node for node in mine if index.saved_of[node] or index.nodes[node].custom is not None}
    return any(later.call > call.call and reaches(record)[later.call].met & saving for later in index.calls.values())


def is_made_graph_walked(record: Record, call: BackwardCall) -> bool:
    """A later call met a node that this one made: its gradients were differentiated."""
    index = lookup(record)
    for later in index.calls.values():
        if later.call <= call.call:
            continue
        nodes = (index.nodes[node] for node in reaches(record)[later.call].met)
        if any(node.born_call == call.call for node in nodes):
            return True
    return False
