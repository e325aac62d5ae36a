"""One tensor without a gradient, and what the record knows of it: the evidence that `why_none` goes by."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.parameter_uses import owners
from backprobe.rules.analysis.rows.lookup import Lookup, lookup
from backprobe.rules.analysis.training.grad_modes import mode_off
from backprobe.rules.framework.locations import line_of, line_words
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Record, Snapshot, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNone:
    """The reason that one tensor has no gradient at the end of the record.

    Attributes:
        verdict: Its name in kebab case.
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
        reached: The backward calls that began after it was first seen and met its node.
    """

    record: Record
    index: Lookup
    tensor: Tensor
    name: str
    history: list[Snapshot]
    bindings: list[Binding]
    reached: list[BackwardCall]

    @property
    def last(self) -> Snapshot:
        """How it stood at the end."""
        return self.history[-1]

    def first_call(self, wanted: Wanted = "any") -> BackwardCall | None:
        """The first backward call of a kind that began after it was first seen; None if there is none."""
        calls = _calls_of(self.record)[wanted]
        at = bisect_left(calls, self.tensor.moment, key=lambda call: call.moment_before)
        return calls[at] if at < len(calls) else None

    def last_call(self) -> BackwardCall | None:
        """The last backward call, if it began after it was first seen."""
        return None if self.first_call() is None else _calls_of(self.record)["any"][-1]

    @property
    def seen_whole(self) -> bool:
        """The recorder made no error of its own: only then is what it did not see evidence that it was not there."""
        return self.record.end is None or not self.record.end.own_errors

    def said(self, verdict: str, text: str, *, site: int | None = None, call: int | None = None) -> WhyNone:
        """A verdict on this tensor; the line is the site's."""
        return WhyNone(verdict=verdict, text=text, site=site, line=line_of(self.record, site), call=call)


Wanted = Literal["any", "storing", "unseen", "cut-short"]
"""Kinds of backward calls: all, those that store gradients, those of C++, and those that were not seen whole."""


@table
def _calls_of(record: Record) -> dict[Wanted, list[BackwardCall]]:
    every = sorted(record.backward_calls, key=lambda call: call.moment_before)
    return {
        "any": every,
        "storing": [call for call in every if call.accumulate_grad],
        "unseen": [call for call in every if call.entry == "unseen"],
        "cut-short": [call for call in every if call.truncated or call.entry == "unseen"],
    }


def case_of(record: Record, index: Lookup, tensor: Tensor, history: list[Snapshot]) -> Case:
    """The evidence on one tensor; `history` is its snapshots, at least one."""
    bindings = index.bindings_of[tensor.tensor]
    return Case(
        record=record,
        index=index,
        tensor=tensor,
        name=bindings[-1].name if bindings else tensor.fqn or "it",
        history=history,
        bindings=bindings,
        reached=[
            index.calls[call]
            for call in sorted(_meeting(record, tensor))
            if index.calls[call].moment_before >= tensor.moment
        ],
    )


def _meeting(record: Record, tensor: Tensor) -> set[int]:
    """The backward calls that met a tensor: as a leaf, as a root, or at the node that made it."""
    met = set(_met_directly(record).get(tensor.tensor, ()))
    made = lookup(record).node_of.get(tensor.tensor)
    if made is not None:
        passes = lookup(record).passes_of_node[made.node]
        met |= {row.call for row in passes if row.output_nr == made.output_nr and not row.hole}
    return met


@table
def _met_directly(record: Record) -> dict[int, list[int]]:
    """The backward calls of which a tensor was a root, or a leaf that was met, by tensor."""
    found: dict[int, list[int]] = {}
    for call in record.backward_calls:
        roots = {root.tensor for root in call.roots if root.tensor is not None}
        for tensor in roots | reaches(record)[call.call].leaves:
            found.setdefault(tensor, []).append(call.call)
    return found


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
    site = rows[0].site
    where = "" if site is None else f" of {line_words(case.record, site, case.tensor.site)}"
    return f"the hook `{rows[0].callable}`{where}"


def successor(case: Case) -> tuple[str, int | None] | None:
    """The name under which a module holds another tensor now, and where that was first seen; None where it does not."""
    fqn = case.tensor.fqn
    if fqn is None or case.tensor.role != "parameter" or case.tensor.tensor in owners(case.record):
        return None
    prefix, _, last = fqn.rpartition(".")
    parts = prefix.split(".")
    found = [
        one for at in range(len(parts)) for one in _parameters_called(case.record).get((".".join(parts[at:]), last), ())
    ]
    if len(found) != 1 or found[0] < case.tensor.tensor:
        return None
    return fqn, case.index.tensors[found[0]].site


def takes_part(case: Case) -> bool:
    """Something was computed from it, or a module that holds it was called."""
    if case.tensor.tensor in used_at(case.record):
        return True
    called = _called_modules(case.record)
    return any(module in called for module in owners(case.record).get(case.tensor.tensor, ()))


@table
def used_at(record: Record) -> dict[int, list[int]]:
    """The moments at which a named tensor was computed from a tensor, in order, by that tensor."""
    found: dict[int, list[int]] = {}
    for row in record.bindings:
        for parent in row.parents:
            found.setdefault(parent, []).append(row.moment)
    return found


@table
def _called_modules(record: Record) -> frozenset[int]:
    return frozenset(row.module for row in record.module_calls)


@table
def _parameters_called(record: Record) -> dict[tuple[str, str], list[int]]:
    """The parameters that modules hold, by the module's name and their own."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in record.modules:
        for one in row.parameters:
            name = row.fqn or row.binding
            if one.tensor is not None and name is not None:
                found.setdefault((name, one.name), []).append(one.tensor)
    return found


def missing(case: Case) -> str:
    """What a cap left out, by name."""
    names = [row.what for row in case.record.truncations]
    return f" (left out: {', '.join(names[:3])})" if names else ""


@table
def giving_back(record: Record) -> dict[int, list[int]]:
    """The calls that were asked for a tensor's gradient and returned one: with `allow_unused` it may be None."""
    found: dict[int, list[int]] = {}
    for call in record.backward_calls:
        asked = (row.tensor for row in call.inputs or ())
        for tensor in {one for one, given in zip(asked, call.returned or (), strict=False) if given}:
            if tensor is not None:
                found.setdefault(tensor, []).append(call.call)
    return found
