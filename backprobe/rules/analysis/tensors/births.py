"""Where the first NaN or infinity of a run was born: the one statement or node that all others come from.

1. Only harm counts: a root, a gradient or a parameter that is not finite and that an update used, or an exception about
   it. Infinities that are written as constants are masks, and steps that a GradScaler skips are its work.
2. What came later is a consequence: NaN spreads through the parameters to every tensor of the next step.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from backprobe.rules.analysis.graph.cuts import rooted_in
from backprobe.rules.analysis.modules.training_modes import used_by_updates
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.autograd_errors import raised_as
from backprobe.rules.analysis.tensors.bad_values import bad_at, bad_since, has_nan, is_bad, is_mask, made_at, masked_row
from backprobe.rules.analysis.tensors.value_origins import bad_write
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Node, NodePass, Raised, Record

Kind = Literal["forward", "input", "softmax", "gradient", "masked", "step"]

_SELECTING: Final = ("WhereBackward", "MaskedFillBackward", "IndexBackward", "MaskedSelectBackward")
_RISKY: Final = (
    "Sqrt",
    "Rsqrt",
    "Pow",
    "Acos",
    "Asin",
    "Atan2",
    "Norm",
    "Div",
    "Log",
    "Exp",
    "Reciprocal",
    "Cdist",
    "Std",
)
_CHEAP: Final = ("ViewBackward", "UnsqueezeBackward", "SqueezeBackward", "ExpandBackward", "TBackward", "NegBackward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """The first value of a run that is not finite, where that did harm.

    Attributes:
        site: Where it was born. tensor: what holds it, in the forward pass; node: what sent it, in a backward call.
        what: "NaN" or "inf", as it was first.
        call: The backward call that it first did harm in. leaves: whose gradients were not finite in that call.
        moment: When it was born.
        noticed: The exception that it ended in.
        seen_at: Where it showed next: the softmax of a masked row.
    """

    kind: Kind
    site: int
    what: str
    call: BackwardCall
    leaves: tuple[int, ...]
    moment: int
    tensor: int | None = None
    node: Node | None = None
    noticed: Raised | None = None
    seen_at: int | None = None


@table
def first_birth(record: Record) -> Birth | None:
    """The first birth that did harm; None if all that counts stayed finite."""
    noticed = next(iter(raised_as(record, "anomaly-nan", "clip-of-non-finite")), None)
    for call in record.backward_calls:
        roots = [one for one in _roots(record, call) if bad_at(record, one, call.moment_before)]
        leaves = _bad_leaves(record, call)
        if not roots and not leaves and (noticed is None or noticed.call != call.call):
            continue
        if not _does_harm(record, call, noticed):
            continue
        stepped = _stepped(record, call, leaves, noticed)
        if stepped is not None:
            return stepped
        if roots:
            return _forward(record, call, roots, leaves, noticed)
        return _without_root(record, call, leaves, noticed)
    return None


def _roots(record: Record, call: BackwardCall) -> set[int]:
    own = {root.tensor for root in call.roots if root.tensor is not None}
    return own or set(rooted_in(record, call))


def _bad_leaves(record: Record, call: BackwardCall) -> tuple[int, ...]:
    index = lookup(record)
    rows = (row for row in index.passes_of_call[call.call] if is_bad(row.grad_output))
    return tuple(sorted({leaf for row in rows if (leaf := index.nodes[row.node].variable) is not None}))


def _does_harm(record: Record, call: BackwardCall, noticed: Raised | None) -> bool:
    """An update used what the call brought, or an exception spoke of it, or nothing is ever updated."""
    if noticed is not None:
        return True
    events = record.optimizer_events
    after = [row for row in events if row.moment > call.moment_before]
    following = next((one.moment_before for one in record.backward_calls if one.call > call.call), None)
    until = [row for row in after if following is None or row.moment <= following]
    if any(row.skipped or row.found_inf for row in until):
        return False
    return call.call in used_by_updates(record) or not used_by_updates(record)


def _stepped(record: Record, call: BackwardCall, leaves: tuple[int, ...], noticed: Raised | None) -> Birth | None:
    """A step before the call that made a parameter bad: what came to it by all calls before was finite."""
    since = bad_since(record)
    held = {row.optimizer: [leaf.tensor for leaf in row.tensors] for row in record.optimizers}
    for event in record.optimizer_events:
        if event.moment >= call.moment_before:
            return None
        written = [leaf for leaf in held.get(event.optimizer or 0, ()) if since.get(leaf) == event.moment]
        if event.kind == "step" and written and event.site is not None:
            what = "NaN" if has_nan(record, written[0]) else "inf"
            return Birth(
                kind="step", site=event.site, what=what, call=call, leaves=leaves, moment=event.moment,
                tensor=written[0], noticed=noticed,
            )  # fmt: skip
    return None


def _without_root(record: Record, call: BackwardCall, leaves: tuple[int, ...], noticed: Raised | None) -> Birth | None:
    """The root is finite: a value that is not was left out of it, or a node's gradient is the first."""
    sent = _backward(record, call, leaves, noticed)
    made = _forward(record, call, sorted(_roots(record, call)), leaves, noticed)
    if made is not None and made.kind == "input" and bad_write(record, made.tensor or 0, made.moment) is not None:
        return made
    if made is not None and (
        made.kind == "softmax" or (made.what == "NaN" and (sent is None or sent.kind != "masked"))
    ):
        return made
    return sent


def _forward(
    record: Record, call: BackwardCall, roots: list[int], leaves: tuple[int, ...], noticed: Raised | None
) -> Birth | None:
    """The earliest value that is not finite among what the root was computed from."""
    since = bad_since(record)
    known = _ancestors(record, [*roots, *rooted_in(record, call)])
    born = sorted((since[one], one) for one in known if one in since and since[one] <= call.moment_before)
    softmax = masked_row(record, [one for _at, one in born])
    for moment, tensor in born:
        site = made_at(record, tensor)
        if site is None or (softmax is None and is_mask(record, tensor)):
            continue
        kind: Kind = "forward" if _is_computed(record, tensor) else "input"
        seen_at = None
        if softmax is not None:
            kind, (tensor, masked) = "softmax", softmax  # noqa: PLW2901 - the row's own story begins earlier
            seen_at, moment = made_at(record, tensor), since[masked]  # noqa: PLW2901 - as above
            site = made_at(record, masked) or site
        what = "NaN" if has_nan(record, tensor) else "inf"
        written = bad_write(record, tensor, moment) if softmax is None else None
        if written is not None:
            kind, site = "input", written
        return Birth(
            kind=kind, site=site, what=what, call=call, leaves=leaves, moment=moment, tensor=tensor, noticed=noticed,
            seen_at=seen_at,
        )  # fmt: skip
    return None


def _ancestors(record: Record, roots: list[int]) -> set[int]:
    """What the roots were computed from, by names; and all that was met while the statements of these ran."""
    index = lookup(record)
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        tensor = waiting.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        for row in index.bindings_of[tensor]:
            waiting += [one for one in row.parents if one not in seen]
            if not all(index.bindings_of[one] for one in row.parents):  # an operand without a name hides its own
                waiting += [one for one in _read_by(record, row) if one not in seen]
            waiting += [one for one in _met_during(record, row) if one not in seen]
    return seen


def _read_by(record: Record, binding: Binding) -> list[int]:
    """The tensors that the names read by a binding's statement held when it ran."""
    return list(held_by_reads(record, binding.site, binding.moment).values())


def held_by_reads(record: Record, site: int, moment: int) -> dict[str, int]:
    """The tensors that the names read by a statement held before a moment, by name."""
    row, found = site_of(record, site), dict[str, int]()
    for name in row.reads:
        bound = [one for one in bindings_named(record)[name] if one.function == row.function and one.moment < moment]
        found.update((name, one.tensor) for one in bound[-1:])
    return found


def _met_during(record: Record, binding: Binding) -> list[int]:
    """The tensors first met since the last moment in the same function: its statement ran functions that made them."""
    moments, by_moment = _moments_of(record).get(binding.function, []), _tensors_by_moment(record)
    at = bisect_left(moments, binding.moment)
    since = moments[at - 1] if at > 0 else -1
    first, last = bisect_right(by_moment, (since, _LAST)), bisect_right(by_moment, (binding.moment, _LAST))
    return [tensor for _moment, tensor in by_moment[first:last]]


_LAST: Final = 1 << 60


@table
def _moments_of(record: Record) -> dict[str, list[int]]:
    """The moments after statements of each function, in order."""
    found: dict[str, list[int]] = {}
    sites = lookup(record).sites
    for row in record.moments:
        if row.site is not None:
            found.setdefault(sites[row.site].function, []).append(row.moment)
    return found


@table
def _tensors_by_moment(record: Record) -> list[tuple[int, int]]:
    """Tensors by when they were first seen; only those that were not finite at some time matter."""
    return sorted((row.moment, row.tensor) for row in record.tensors if row.tensor in bad_since(record))


def _is_computed(record: Record, tensor: int) -> bool:
    """An operation made it from other tensors."""
    row = lookup(record).tensors[tensor]
    bound = lookup(record).bindings_of[tensor][:1]
    return row.created_by == "op" or any(one != tensor for binding in bound for one in binding.parents)


def _backward(record: Record, call: BackwardCall, leaves: tuple[int, ...], noticed: Raised | None) -> Birth | None:
    """The first node of a call that got a finite gradient and sent one that is not."""
    index = lookup(record)
    rows = [row for row in index.passes_of_call[call.call] if row.position is not None]
    if noticed is not None and noticed.family == "anomaly-nan" and noticed.call == call.call and rows:
        last = index.nodes[max(rows, key=lambda row: row.position or 0).node]  # anomaly mode raises after it
        if f"'{last.type}'" in noticed.message:
            return _sent_by(record, call, last, None, leaves, noticed)
    bad = [row for row in rows if is_bad(row.grad_output)]
    if not bad:
        return None
    first = min(bad, key=lambda row: row.position or 0)
    finite = {row.node: row for row in rows if not is_bad(row.grad_output)}
    senders = [finite[edge.node] for edge in record.edges if edge.to_node == first.node and edge.node in finite]
    senders = [row for row in senders if (row.position or 0) < (first.position or 0)]
    if not senders:
        return None
    risky = [row for row in senders if index.nodes[row.node].type.startswith(_RISKY)]
    sender = max(risky or senders, key=lambda row: row.position or 0)
    return _sent_by(record, call, index.nodes[sender.node], (sender, first), leaves, noticed)


def _sent_by(
    record: Record, call: BackwardCall, node: Node, passes: tuple[NodePass, NodePass] | None, leaves: tuple[int, ...],
    noticed: Raised | None,
) -> Birth | None:  # fmt: skip
    select = None if passes is None else _selecting(record, call, passes)
    site = node.site if select is None else select.site
    if site is None:
        return None
    sent = passes[1].grad_output if passes is not None else None
    return Birth(
        kind="gradient" if select is None else "masked", site=site, call=call, leaves=leaves, node=node,
        what="NaN" if sent is None or sent.nan else "inf", moment=call.moment_before, noticed=noticed,
        seen_at=node.site if node.site != site else None,
    )  # fmt: skip


def _selecting(record: Record, call: BackwardCall, passes: tuple[NodePass, NodePass]) -> Node | None:
    """The `where` or mask product that hands zeros to the sender: zero times infinity is the NaN."""
    index = lookup(record)
    got, sent = passes[0].grad_output, passes[1].grad_output
    if got is None or sent is None or not got.zeros or not sent.nan or sent.nan > got.zeros:
        return None
    ran = {row.node: row for row in index.passes_of_call[call.call] if row.position is not None}
    level = [passes[0].node]
    for _ in range(4):
        level = [edge.node for edge in record.edges if edge.to_node in level and edge.node in ran]
        for number in level:
            node, row = index.nodes[number], ran[number]
            if node.type.startswith(_SELECTING):
                return node
            if node.type.startswith("MulBackward") and row.grad_output is not None and not row.grad_output.zeros:
                return node
        level = [number for number in level if index.nodes[number].type.startswith((*_CHEAP, "MulBackward"))]
    return None
