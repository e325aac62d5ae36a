"""The names that tensors had: bindings, and which tensor a name held last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backprobe.capture.options import Options, is_kept
from backprobe.capture.output.text import name as short
from backprobe.capture.output.writer import Writer
from backprobe.capture.rewriting.sites import SiteFacts
from backprobe.capture.tracking.moments import Moments
from backprobe.capture.tracking.tensors.tensor_registry import TrackedTensor
from backprobe.record import Binding

_PARENTS = 64


class Names:
    """Follows the names of tensors, function by function.

    Attributes:
        held: The tensor that each name holds, by function and name.
    """

    def __init__(self, writer: Writer, moments: Moments, options: Options) -> None:
        self._writer, self._moments, self._options = writer, moments, options
        self.held: dict[tuple[str, str], int] = {}
        self._next = 0
        self._times: dict[tuple[str, int], int] = {}

    def read_by(self, facts: SiteFacts) -> tuple[int, ...]:
        """Return the tensors that the names a statement reads held last, in source order, each once."""
        return self.held_by(facts.read_keys)

    def held_by(self, keys: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Return the tensors that names held last, in their order, each once."""
        found: dict[int, None] = {}
        for key in keys:
            number = self.held.get(key)
            if number is not None:
                found[number] = None
        return tuple(found)[:_PARENTS]

    def bind(self, facts: SiteFacts, name: str, known: TrackedTensor, parents: Sequence[int]) -> None:
        """Bind a name to a tensor."""
        key = (facts.scope.owner(name), name)
        before = self.held.get(key)
        self.held[key] = known.number
        known.name = name
        if facts.kind == "inplace" and before == known.number:
            return
        times = self._times[key[1], facts.site] = self._times.get((key[1], facts.site), 0) + 1
        if not is_kept(times, self._options.caps.site_times):
            self._cut()
            return
        self._writer.add(
            "bindings",
            Binding(
                binding=self._next,
                tensor=known.number,
                name=short(name),
                site=facts.site,
                moment=self._moments.now(),
                function=short(key[0]),
                version=known.version,
                replaces=None if before == known.number else before,
                parents=tuple(parent for parent in parents if parent != known.number),
            ),
        )
        self._next += 1

    def pass_over(self, facts: SiteFacts, name: str) -> None:
        """Note that a name holds a tensor from now on that is not recorded."""
        self.unbind(facts, name)
        self._cut()

    def _cut(self) -> None:
        self._writer.cut("bindings", "a statement that runs often is recorded at 1-2-5 per decade", 0)

    def forget(self, keys: Iterable[tuple[str, str]]) -> None:
        """Forget what these names hold: it is no tensor any more, as far as is known."""
        for key in keys:
            self.held.pop(key, None)

    def unbind(self, facts: SiteFacts, name: str) -> None:
        """Note that a name holds something else than a tensor from now on."""
        self.held.pop((facts.scope.owner(name), name), None)
