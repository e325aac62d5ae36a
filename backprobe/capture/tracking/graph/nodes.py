"""The autograd nodes that were met: numbered, described once, watched until they die.

1. A node gets one sentinel, a plain object among its pre-hooks. The node holds the sentinel and we hold a weak
   reference to it, so the sentinel's death is the node's death and nothing lives longer because of us.
2. Nodes with Python wrappers are freed by recursion in C: past `budget` of them at once a deep chain would overflow the
   stack and kill the process, so no further node is touched.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from backprobe.capture.output.text import name
from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.tensor_memory import dtype_name
from backprobe.capture.torch_access.torch_internals import own_hook_numbers
from backprobe.capture.tracking.moments import Moments
from backprobe.capture.tracking.timeline import Threads
from backprobe.record import Node, Output

ACCUMULATE: Final = 2**64 - 1
"""The sequence number of every AccumulateGrad."""

_OUTPUTS: Final = 256
_HEAD: Final = object.__basicsize__
_WORD: Final = ctypes.sizeof(ctypes.c_void_p)


class Sentinel:
    """A pre-hook that tells which gradients reach its node; it changes nothing and never raises.

    Attributes:
        handle: Takes it off its node again.
    """

    __slots__ = ("__weakref__", "arrived", "handle", "number")

    def __init__(self, number: int, arrived: Callable[[int, Any], None]) -> None:
        self.number = number
        self.arrived = arrived
        self.handle: Any = None

    def __call__(self, gradients: Any) -> None:
        """Tell which gradients reach the node, before it runs."""
        self.arrived(self.number, gradients)


class _SentinelRef(weakref.ref[Sentinel]):
    __slots__ = ("key", "number")


@dataclass(slots=True)
class NodeFacts:
    """A node as long as it lives.

    Attributes:
        saves: Tensors that it held when it was met. storages: their bytes by storage address.
        tensors: The record's tensors that it made, by output number.
    """

    number: int
    row: Node
    saves: int
    storages: dict[int, int]
    tensors: dict[int, int]
    described: bool = False

    @property
    def type(self) -> str:
        """The name of its type in the record."""
        return self.row.type

    @property
    def seq(self) -> int | None:
        """Its autograd sequence number; None for AccumulateGrad."""
        return self.row.seq

    @property
    def freed_by(self) -> int | None:
        """The call that freed what it saved."""
        return self.row.freed_by


class Nodes:
    """Meets nodes under one budget.

    Attributes:
        order_of_call: Order of derivation of the graph that a create_graph call differentiates, by call.
        saved: Tells what a node saves. see: meets the leaf that a node stores into. Both are set by the recorder.
        arrived: Where sentinels report; set by `Passes`.
    """

    def __init__(self, writer: Writer, threads: Threads, moments: Moments, budget: int) -> None:
        self.budget = budget
        self.facts: dict[int, NodeFacts] = {}
        self.order_of_call: dict[int, int] = {}
        self.saved: Any = None
        self.see: Callable[[Any], Any] = _nothing
        self.arrived: Callable[[NodeFacts, Any], None] = _nothing
        self.dead: deque[_SentinelRef] = deque()
        self._writer, self._threads, self._moments = writer, threads, moments
        self._live: dict[int, _SentinelRef] = {}
        self._next = 0

    @property
    def has_room(self) -> bool:
        """One more node may be wrapped."""
        return len(self._live) < self.budget

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def held_totals(self) -> tuple[int, int]:
        """Live nodes that hold saved tensors still, and the bytes of the distinct storages that they hold."""
        return held_by(self.facts.values())

    def find_facts(self, node: Any) -> NodeFacts | None:
        """Return the facts of a node that was met before and lives."""
        ref = self._live.get(_key(node))
        sentinel = None if ref is None else ref()
        return None if sentinel is None else self.facts.get(sentinel.number)

    def meet(self, node: Any) -> NodeFacts | None:
        """Watch a node and give it a number, unless that was done; return its facts; None past the budget."""
        facts = self.find_facts(node)
        if facts is not None:
            return facts
        if not self.has_room:
            self.refuse()
            return None
        facts = NodeFacts(self._next, self._row(node), 0, {}, {})
        self._writer.add("nodes", facts.row)  # first of all: no other row may name a node that has none
        self._next += 1
        sentinel = Sentinel(facts.number, self._on_arrival)
        with own_hook_numbers():
            sentinel.handle = node.register_prehook(sentinel)
        ref = _SentinelRef(sentinel, self.dead.append)
        ref.key, ref.number = _key(node), facts.number
        self._live[ref.key] = ref
        self.facts[facts.number] = facts
        self._describe(facts, node)
        self._writer.add("nodes", facts.row)
        return facts

    def meet_producer(self, node: Any, tensor: int, output_nr: int) -> NodeFacts | None:
        """Meet the node that made a tensor of the record, as its output `output_nr`."""
        facts = self.meet(node)
        if facts is not None:
            facts.tensors[output_nr] = tensor
        return facts

    def lives(self, number: int) -> bool:
        """Return whether a node of the record is not yet known to be dead."""
        return number in self.facts

    def complete(self, roots: Any) -> None:
        """Read the outputs of nodes that should have run and did not; here they are read when a node is met."""

    def refuse(self) -> None:
        """Count a node that was left alone."""
        why = "freeing more nodes with Python wrappers could overflow the C stack; raise RLIMIT_STACK to see more"
        self._writer.cut("live nodes", why, self.budget)

    def update(self, facts: NodeFacts, **changes: Any) -> None:
        """Write a node's row again with other values."""
        facts.row = msgspec.structs.replace(facts.row, **changes)
        self._writer.add("nodes", facts.row)

    def bury(self) -> None:
        """Write down the nodes that died since the last time."""
        while self.dead:
            ref = self.dead.popleft()
            if self._live.get(ref.key) is ref:
                del self._live[ref.key]
            facts = self.facts.pop(ref.number, None)
            if facts is not None:
                self.update(facts, died=self._moments.now())

    def detach(self) -> None:
        """Take every sentinel off: the nodes that live on are met as new ones."""
        refs = list(self._live.values())
        self._live.clear()  # a sentinel that goes now does not say that its node died
        self.facts.clear()
        for ref in refs:
            sentinel = ref()
            if sentinel is not None and sentinel.handle is not None:
                sentinel.handle.remove()
        self.dead.clear()

    def close(self) -> None:
        """Forget everything and take every sentinel off."""
        self.arrived = _nothing
        self.detach()

    def _on_arrival(self, number: int, gradients: Any) -> None:
        facts = self.facts.get(number)
        if facts is not None:
            self.arrived(facts, gradients)

    def _describe(self, facts: NodeFacts, node: Any) -> None:
        """Fill in what a node that was just met saves, or which leaf it stores into."""
        if facts.seq is not None or not hasattr(node, "variable"):
            self.saved.describe(facts, node)
            return
        known = self.see(node.variable)
        if known is not None:
            facts.tensors[0] = known.number
            facts.row = msgspec.structs.replace(facts.row, variable=known.number)

    def _row(self, node: Any) -> Node:
        number = node._sequence_nr()
        leaf = number == ACCUMULATE
        owner, thread = self._threads.owner(number) if not leaf else (None, self._threads.here().thread)
        born = None if owner is None else owner.call
        custom = getattr(type(node), "_forward_cls", None)
        return Node(
            node=self._next,
            type=type_name(node),
            thread=thread,
            first_seen=self._moments.now(),
            seq=None if leaf else number,
            site=None if owner is None else owner.site,
            proof="unknown" if owner is None or owner.site is None else "range",
            module_call=None if owner is None else owner.module_call,
            born_in="forward" if born is None else "backward" if born in self.order_of_call else "recompute",
            born_call=born,
            grad_order=0 if born is None else 1 + self.order_of_call.get(born, 0),
            outputs=_outputs(node),
            custom=None if custom is None else name(custom.__qualname__),
        )


def _key(node: Any) -> int:
    """Return what stays the same of a node while it lives.

    With torch 2.11 its Python object does not: once nobody holds that one, the next read of `grad_fn` makes another.
    The object of a node written in C++ is a head and a pointer to the node, with or without the count of a shared
    pointer behind it; that of a `torch.autograd.Function` is larger, and lives as long as its node.
    """
    if type(node).__basicsize__ - _HEAD in (_WORD, 2 * _WORD):
        return ctypes.c_size_t.from_address(id(node) + _HEAD).value
    return id(node)


def held_by(nodes: Iterable[NodeFacts]) -> tuple[int, int]:
    """Nodes that hold saved tensors still, and the bytes of the distinct storages that they hold."""
    holding = [facts for facts in nodes if facts.saves and facts.freed_by is None]
    storages: dict[int, int] = {}
    for facts in holding:
        storages.update(facts.storages)
    return len(holding), sum(storages.values())


def type_name(node: Any) -> str:
    """Return a node's name as torch prints it, without its C++ namespace: `MulBackward0`, `AccumulateGrad`."""
    return name(node.name().rsplit("::", 1)[-1])


def _outputs(node: Any) -> tuple[Output, ...]:
    found: list[Output] = []
    for meta in node._input_metadata[:_OUTPUTS]:
        try:
            shape = tuple(int(size) for size in meta.shape)
            found.append(Output(shape=shape, dtype=dtype_name(meta.dtype), device=str(meta.device)))
        except (RuntimeError, TypeError, AttributeError):
            found.append(Output(shape=(), dtype="", device=""))  # a nested or undefined output has no shape
    return tuple(found)


def _nothing(*_: Any) -> None:
    return None
