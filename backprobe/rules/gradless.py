"""One tensor without a gradient, and what the record knows of it: the evidence that `why_none` goes by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from backprobe.rules.cuts import mode_off
from backprobe.rules.lookup import Lookup, lookup
from backprobe.rules.places import line_of
from backprobe.rules.reach import Reach, arrived_at, reaches
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Record, Snapshot, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNone:
    """The reason that one tensor has no gradient at the end of the record.

    Attributes:
        verdict: Its name in kebab case, as `engine.md` lists them.
        text: One sentence for people, without a full stop.
        site, line: The statement that decided it; None where no statement did.
        call: The backward call that decided it; None where none did.
    """

    verdict: str
    text: str
    site: int | None = None
    line: int | None = None
    call: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One tensor without a gradient, and what the record knows of it.

    Attributes:
        name: What the program calls it.
        history: Its snapshots in order, at least one.
        calls: The backward calls that began after it was first seen.
        reached: Of those, the ones that met its node.
    """

    record: Record
    index: Lookup
    tensor: Tensor
    name: str
    history: list[Snapshot]
    bindings: list[Binding]
    calls: list[BackwardCall]
    reached: list[BackwardCall]

    @property
    def last(self) -> Snapshot:
        """How it stood at the end."""
        return self.history[-1]

    @property
    def seen_whole(self) -> bool:
        """The recorder made no error of its own: only then is what it did not see evidence that it was not there."""
        return self.record.end is None or not self.record.end.own_errors

    def said(self, verdict: str, text: str, *, site: int | None = None, call: int | None = None) -> WhyNone:
        """A verdict on this tensor; the line is the site's."""
        return WhyNone(verdict=verdict, text=text, site=site, line=line_of(self.record, site), call=call)


def case_of(record: Record, index: Lookup, tensor: Tensor, history: list[Snapshot]) -> Case:
    """The evidence on one tensor; `history` is its snapshots, at least one."""
    bindings = index.bindings_of[tensor.tensor]
    calls = [call for call in record.backward_calls if call.moment_before >= tensor.moment]
    known = reaches(record)
    return Case(
        record=record,
        index=index,
        tensor=tensor,
        name=bindings[-1].name if bindings else tensor.fqn or "it",
        history=history,
        bindings=bindings,
        calls=calls,
        reached=[call for call in calls if _meets(record, known[call.call], call, tensor.tensor)],
    )


def _meets(record: Record, reach: Reach, call: BackwardCall, tensor: int) -> bool:
    if tensor in reach.leaves or any(root.tensor == tensor for root in call.roots):
        return True
    made = lookup(record).node_of.get(tensor)
    return made is not None and arrived_at(record, call, made)


def switched_off(case: Case) -> int | None:
    """The statement after which a leaf no longer required grad; None if it never did."""
    pairs = list(pairwise(case.history))
    for before, after in reversed(pairs):
        if before.requires_grad and before.is_leaf and not after.requires_grad and after.is_leaf:
            return case.index.moments[after.moment].site
    return None


def switch_over(case: Case) -> tuple[str, int | None] | None:
    """The grad mode it was made under, and what switched it, where its statement gives tracked tensors otherwise."""
    tensor = case.tensor
    moment, mode = case.index.moments[tensor.moment], mode_off(case.record, tensor.moment)
    is_first = mode is not None and mode.moment == tensor.moment  # of the body: it was numbered before the switch
    if tensor.site not in tracked_sites(case.record) or not (is_first or moment.inference_mode or not moment.grad_mode):
        return None
    is_inference = moment.inference_mode or (is_first and mode is not None and mode.kind == "inference")
    return "`inference_mode`" if is_inference else "`no_grad`", None if mode is None else mode.site


@table
def tracked_sites(record: Record) -> frozenset[int]:
    """The statements that made a tracked tensor at least once."""
    index = lookup(record)
    return frozenset(
        row.site
        for row in record.tensors
        if row.site is not None
        and any(snapshot.requires_grad and not snapshot.is_leaf for snapshot in index.snapshots_of[row.tensor])
    )


def hook_on(case: Case) -> str:
    """The post-accumulate hook of the tensor in words, if it has just one."""
    rows = [row for row in case.record.hooks if row.kind == "post-accumulate" and row.tensor == case.tensor.tensor]
    if len(rows) != 1:
        return "a hook"
    line = line_of(case.record, rows[0].site)
    return f"the hook `{rows[0].callable}`" + ("" if line is None else f" of line {line}")


def successor(case: Case) -> tuple[str, int | None] | None:
    """The name under which a module holds another tensor now, and where that was first seen; None where it does not."""
    fqn = case.tensor.fqn
    held = [(module, one) for module in case.record.modules for one in module.parameters]
    if fqn is None or case.tensor.role != "parameter" or any(one.tensor == case.tensor.tensor for _, one in held):
        return None
    prefix, _, last = fqn.rpartition(".")
    found = [
        one.tensor
        for module, one in held
        if one.name == last and one.tensor is not None and prefix.endswith(module.fqn or module.binding or "\0")
    ]
    if len(found) != 1 or found[0] < case.tensor.tensor:
        return None
    return fqn, case.index.tensors[found[0]].site


def takes_part(case: Case) -> bool:
    """Something was computed from it, or a module that holds it was called."""
    tensor = case.tensor.tensor
    if any(tensor in row.parents for row in case.record.bindings):
        return True
    called = {row.module for row in case.record.module_calls}
    return any(one.tensor == tensor for row in case.record.modules if row.module in called for one in row.parameters)


def missing(case: Case) -> str:
    """What a cap left out, by name."""
    names = [row.what for row in case.record.truncations]
    return f" (left out: {', '.join(names[:3])})" if names else ""
