"""What the sentinels of one backward call tell: which nodes ran, in which order, and which gradients reached them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from backprobe.capture.nodes import NodeFacts
from backprobe.capture.options import Options
from backprobe.capture.reading import elements
from backprobe.capture.states import States
from backprobe.capture.walk import Walk
from backprobe.record import BackwardCall, NodePass, Statistics

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder


class Pass:
    """One pass of the engine as its sentinels saw it.

    Attributes:
        ran: Facts of the nodes that began to run, in order; each once.
    """

    def __init__(self, states: States, options: Options) -> None:
        self.ran: dict[int, NodeFacts] = {}
        self._gradients: dict[tuple[int, int], Statistics | None] = {}
        self._holes: set[tuple[int, int]] = set()
        self._small: list[tuple[int, torch.dtype, tuple[int, ...], bytes]] = []
        self._states, self._options = states, options

    def arrive(self, facts: NodeFacts, gradients: Any, *, detailed: bool) -> None:
        """Gradients reached a node, one per forward output of it."""
        self.ran[facts.number] = facts
        if not detailed:
            return
        for output_nr, gradient in enumerate(gradients):
            key = (facts.number, output_nr)
            if not isinstance(gradient, torch.Tensor):
                self._holes.add(key)
                continue
            raw = elements(gradient, self._options.caps.elements) if self._options.measures else None
            self._gradients[key] = self._states.statistics(gradient, raw)
            tensor = facts.tensors.get(output_nr)
            if tensor is not None and raw is not None:
                self._small.append((tensor, gradient.dtype, tuple(gradient.shape), raw))

    def arrive_at(self, tensor: int, gradient: torch.Tensor) -> None:
        """A gradient was returned for an input, whose own node does not run."""
        raw = elements(gradient, self._options.caps.elements) if self._options.measures else None
        if raw is not None:
            self._small.append((tensor, gradient.dtype, tuple(gradient.shape), raw))

    def write(self, recorder: Recorder, met: Walk, row: BackwardCall, moment: int, *, raised: bool) -> list[int]:
        """Write the pass's rows; the numbers of the nodes that it freed.

        A node's saved tensors are released after it ran, unless the graph is kept: the last node of a pass that raised
        is the one that raised, and still holds them.
        """
        done = list(self.ran.values())
        if raised:
            done = done[:-1]
        freed = {
            facts.number: facts for facts in done if not row.retain_graph and facts.saves and facts.row.freed_by is None
        }
        for facts in freed.values():
            recorder.nodes.update(facts, freed_by=row.call)
        positions = {number: position for position, number in enumerate(self.ran)}
        for facts in {**{f.number: f for f in met.nodes}, **self.ran}.values():
            self._rows(recorder, facts, row.call, positions.get(facts.number), freed=facts.number in freed)
        for tensor, dtype, shape, raw in self._small:
            self._states.small_raw(tensor, moment, "arrived", dtype, shape, raw)
        return list(freed)

    def _rows(self, recorder: Recorder, facts: NodeFacts, call: int, position: int | None, *, freed: bool) -> None:
        outputs = max(1, len(facts.row.outputs)) if position is not None else 1
        for output_nr in range(outputs):
            key = (facts.number, output_nr)
            recorder.writer.add(
                "node_passes",
                NodePass(
                    call=call, node=facts.number, output_nr=output_nr, position=position, freed=freed,
                    hole=key in self._holes, grad_output=self._gradients.get(key),
                ),
            )  # fmt: skip
