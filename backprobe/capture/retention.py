"""What live roots keep alive: after each backward call, and at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from backprobe.capture.nodes import NodeFacts
from backprobe.capture.private import node_of
from backprobe.capture.text import name
from backprobe.capture.walk import Walk, walk
from backprobe.record import BackwardCall, Retention

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder
    from backprobe.capture.tensors import Known

_ROOTS = 256
"""Live roots that are walked one by one at the end."""

State = Literal["held", "freed", "partly-freed", "released"]


def held_bytes(nodes: Iterable[NodeFacts]) -> int:
    """Bytes of the distinct storages that nodes hold which were not freed."""
    storages: dict[int, int] = {}
    for facts in nodes:
        if facts.row.freed_by is None:
            storages.update(facts.storages)
    return sum(storages.values())


def after_call(recorder: Recorder, root: int, met: Walk, row: BackwardCall, moment: int) -> None:
    """What the graph of a call's root holds now."""
    known = recorder.tensors.live.get(root)
    if known is not None and met.nodes:
        _write(recorder, known, met.nodes, moment, row.call, row.site)


def at_end(recorder: Recorder, moment: int) -> None:
    """Walk the graphs of the tensors that live at the end, and say what each of them holds.

    A tensor inside the graph of another one is not a root of its own.
    """
    made: list[tuple[Known, Any]] = []
    for known in list(recorder.tensors.live.values()):
        tensor = known.ref()
        if tensor is not None and known.node is not None and known.node in recorder.nodes.facts:
            made.append((known, node_of(tensor)))
    entered = walk([node for _, node in made], recorder.nodes, recorder.writer).entered
    roots = [(known, node) for known, node in made if known.node not in entered]
    for known, node in roots[:_ROOTS]:
        _write(recorder, known, walk([node], recorder.nodes, recorder.writer).nodes, moment, None, known.site)
    for _ in roots[_ROOTS:]:
        recorder.writer.cut("retentions at the end", "more graphs are alive than are told one by one", _ROOTS, moment)


def _write(
    recorder: Recorder, known: Known, nodes: Sequence[NodeFacts], moment: int, call: int | None, site: int | None
) -> None:
    state, freed_by = state_of(nodes)
    holding = [facts for facts in nodes if facts.saves and facts.row.freed_by is None]
    label: Any = known.name or known.row.fqn
    recorder.writer.add(
        "retentions",
        Retention(
            root=known.number, moment=moment, state=state, call=call, name=None if label is None else name(label),
            freed_by=freed_by, held_nodes=len(holding), held_bytes=held_bytes(nodes), site=site,
        ),
    )  # fmt: skip


def state_of(nodes: Sequence[NodeFacts]) -> tuple[State, int | None]:
    """The state of a graph and the call that freed it last; "released" if its nodes never held anything."""
    saving = [facts for facts in nodes if facts.saves]
    freed = [facts.row.freed_by for facts in saving if facts.row.freed_by is not None]
    if not saving:
        return "released", None
    if not freed:
        return "held", None
    return ("freed" if len(freed) == len(saving) else "partly-freed"), max(freed)
