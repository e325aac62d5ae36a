"""What live roots keep alive: after each backward call, and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backprobe.capture.output.text import name
from backprobe.capture.torch_access.torch_internals import node_of
from backprobe.capture.tracking.graph.retained_names import tell_holders
from backprobe.capture.tracking.graph.walk import Walk
from backprobe.record import BackwardCall, Retention

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession
    from backprobe.capture.tracking.tensors.tensor_registry import TrackedTensor

_ROOTS = 256
"""Live roots that are walked one by one at the end."""


def after_call(recorder: CaptureSession, root: int, met: Walk, row: BackwardCall, moment: int) -> None:
    """Record what the graph of a call's root holds now."""
    known = recorder.tensors.live.get(root)
    if known is not None and len(met):
        _write(recorder, known, met, moment, row.call, row.site)


def at_end(recorder: CaptureSession, moment: int) -> None:
    """Say what the graphs of the tensors that live at the end hold, and which names keep them."""
    tell_holders(recorder, roots_at(recorder, moment))


def roots_at(recorder: CaptureSession, moment: int) -> list[Retention]:
    """Walk the graphs of the tensors that live now, and write what each of them holds.

    A tensor inside the graph of another one is not a root.
    """
    made: list[tuple[TrackedTensor, Any]] = []
    for known in list(recorder.tensors.live.values()):
        tensor = known.ref()
        if tensor is None or known.node is None or not recorder.nodes.lives(known.node):
            continue
        node = node_of(tensor)
        if node is not None:  # else torch answers no more for a view of a base that changed
            made.append((known, node))
    everything = recorder.calls.walk([node for _, node in made])
    roots = [(known, node) for known, node in made if known.node is not None and not everything.enters(known.node)]
    rows = [
        _write(recorder, known, recorder.calls.walk([node]), moment, None, known.site) for known, node in roots[:_ROOTS]
    ]
    for _ in roots[_ROOTS:]:
        recorder.writer.cut("retentions at the end", "more graphs are alive than are listed one by one", _ROOTS, moment)
    return rows


def _write(
    recorder: CaptureSession, known: TrackedTensor, graph: Walk, moment: int, call: int | None, site: int | None
) -> Retention:
    state, freed_by = graph.state
    nodes, held_bytes = graph.held_totals
    label: Any = known.name or known.row.fqn
    row = Retention(
        root=known.number, moment=moment, state=state, call=call, name=None if label is None else name(label),
        freed_by=freed_by, held_nodes=nodes, held_bytes=held_bytes, site=site,
    )  # fmt: skip
    recorder.writer.add("retentions", row)
    return row
