"""What the `tensor` row says beside the tensor itself: its last state, its shown name, why it has no gradient."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.record.state import shown_name

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, Snapshot
    from backprobe.rules import WhyNone

_COUNT_MOST: Final = 2**63 - 1
"""A hostile record may count more than a column holds."""


@dataclass(slots=True, kw_only=True)
class LastState:
    """One tensor's derived columns; see their comments in the table. Filled while the record is read once."""

    name: str | None = None
    node: int | None = None
    output_nr: int | None = None
    node_proof: str | None = None
    why_none: str | None = None
    why_text: str | None = None
    why_site: int | None = None
    why_line: int | None = None
    why_call: int | None = None
    grad_norm: float | None = None
    value_norm: float | None = None
    nonfinite: int = 0
    grad_ever: bool = False
    held_bytes: int = 0
    snapshot: Snapshot | None = None

    def of_snapshot(self, field: str) -> Any:
        """Return a field of the last snapshot; None if there is no snapshot."""
        return None if self.snapshot is None else getattr(self.snapshot, field)

    def see(self, snapshot: Snapshot) -> None:
        """Take the tensor's next snapshot, in order of moments."""
        self.snapshot = snapshot
        if snapshot.grad == "present":
            self.grad_ever = True
        value, gradient = snapshot.value, snapshot.grad_stats
        odd = 0
        if value is not None:
            odd = value.nan + value.inf
            if value.norm is not None:
                self.value_norm = value.norm
        if gradient is not None:
            odd += gradient.nan + gradient.inf
            if gradient.norm is not None:
                self.grad_norm = gradient.norm
        if odd > self.nonfinite:
            self.nonfinite = min(odd, _COUNT_MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What derived columns are looked up in.

    Attributes:
        last: By tensor. line_of_site, path_of_source: by number.
    """

    last: Mapping[int, LastState]
    line_of_site: Mapping[int | None, int]
    path_of_source: Mapping[int | None, str]


def lookup(record: Record, whys: Mapping[int, WhyNone]) -> Lookup:
    """Work it all out, in one pass over bindings, snapshots and retentions."""
    last = {tensor.tensor: LastState() for tensor in record.tensors}
    bindings: defaultdict[int, list[Binding]] = defaultdict(list)
    for binding in record.bindings:
        bindings[binding.tensor].append(binding)
    for tensor, names in bindings.items():
        last[tensor].name = shown_name(names)
    for made in record.tensor_nodes:
        state = last[made.tensor]
        state.node, state.output_nr, state.node_proof = made.node, made.output_nr, made.proof
    for snapshot in record.snapshots:
        last[snapshot.tensor].see(snapshot)
    for retention in record.retentions:
        last[retention.root].held_bytes = retention.held_bytes
    for tensor, why in whys.items():
        state = last.get(tensor)
        if state is not None:
            state.why_none, state.why_text = why.verdict, why.text
            state.why_site, state.why_line, state.why_call = why.site, why.line, why.call
    return Lookup(
        last=last,
        line_of_site={site.site: site.line for site in record.sites},
        path_of_source={source.source: source.path for source in record.sources},
    )
