"""Where tracking ends: statements that read a tracked tensor and give an untracked one."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_expressions import cause_between
from backprobe.rules.analysis.source.expressions import outermost
from backprobe.rules.analysis.source.named_values import last_bound
from backprobe.rules.analysis.source.plain_values import left_tensors
from backprobe.rules.analysis.source.syntax import is_same_statement, statement, tree_of, value_of
from backprobe.rules.analysis.tensors.parents import unnamed_from
from backprobe.rules.analysis.training.grad_modes import mode_off
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Moment, Record, Site

_ABOVE: Final = 64
"""Tensors that are looked at on the way up to a cut."""

_MISSES: Final = 20
"""Tensors of one statement without a cut, after which its others are not looked at: a loop repeats itself."""

_MODES: Final = ("`no_grad`", "`inference_mode`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A statement that made an untracked tensor from a tracked one.

    Attributes:
        tensor: What came out; source: the tracked one that went in.
        site: The statement where tracking ended: where the value stopped being a tensor, if it did.
        how: Its cause in words, as far as the statement or the grad mode shows it.
        switched_at: The `with`, decorator or call that switched the mode, where a mode is the cause and it is recorded.
    """

    tensor: int
    source: int
    site: int
    how: str
    switched_at: int | None = None


@table
def cuts(record: Record) -> dict[int, Cut]:
    """The cut at which each untracked tensor lost its history, by the tensor that came out; none without a cause.

    A name that a statement reads is no cause: its shape may be all that was asked of it.
    """
    found: dict[int, Cut] = {}
    seen: set[int] = set()
    missed: Counter[int] = Counter()
    for binding in record.bindings:
        state = state_at(record, binding.tensor, binding.moment)
        if state is None or state.requires_grad or binding.tensor in seen:
            continue
        if _in_custom_function(record, lookup(record).sites[binding.site]):
            continue  # torch runs its forward without gradients: what it returns may be tracked all the same
        seen.add(binding.tensor)
        if missed[binding.site] >= _MISSES:
            continue
        cut = _cut_at(record, binding)
        if cut is None:
            missed[binding.site] += 1
        else:
            found[binding.tensor] = cut
    return found


def cut_above(record: Record, tensor: int) -> Cut | None:
    """Where a tensor lost its history: its own cut, else the nearest among the untracked ones it was made from."""
    found, made_from = cuts(record), _untracked_parents(record)
    seen, level = {tensor}, [tensor]
    while level and len(seen) < _ABOVE:
        for one in level:
            if one in found:
                return found[one]
        level = [one for one in chain.from_iterable(map(made_from.__getitem__, level)) if one not in seen]
        level = list(dict.fromkeys(level))
        seen.update(level)
    return None


@table
def _untracked_parents(record: Record) -> defaultdict[int, list[int]]:
    """The tensors that never required grad and went into the first binding of a tensor, by that tensor."""
    index = lookup(record)
    found: defaultdict[int, list[int]] = defaultdict(list)
    for tensor, rows in index.bindings_of.items():
        found[tensor] = [one for one in rows[0].parents if _is_untracked(record, one)]
    return found


def _is_untracked(record: Record, tensor: int) -> bool:
    history = lookup(record).snapshots_of[tensor]
    return bool(history) and not any(snapshot.requires_grad for snapshot in history)


def _cut_at(record: Record, binding: Binding) -> Cut | None:
    """The cut that one binding shows: in its own statement, else where a value that it reads stopped being a tensor."""
    for parent in binding.parents:
        before = state_at(record, parent, binding.moment)
        if parent != binding.tensor and before is not None and before.requires_grad:
            cut = _made_at(record, binding, parent)
            if cut is not None:
                return cut
    left = left_tensors(record, binding)
    if left is None:
        return None
    return Cut(tensor=binding.tensor, source=left.source, site=left.site, how=left.how)


def _made_at(record: Record, binding: Binding, parent: int) -> Cut | None:
    """The cut at the binding's own statement, or at the `return` that its value came from."""
    index = lookup(record)
    tensor = index.tensors[binding.tensor]
    places = [(binding.site, binding.moment)]
    if tensor.site is not None and tensor.site != binding.site and _returns(record, index.sites[tensor.site]):
        places.insert(0, (tensor.site, tensor.moment))
    for site, moment in places:
        how = _cause(record, index.sites[site], index.moments[moment], binding.name, parent, binding.tensor)
        if how is not None:
            mode = mode_off(record, moment) if how in _MODES else None
            switched = None if mode is None else mode.site
            return Cut(tensor=binding.tensor, source=parent, site=site, how=how, switched_at=switched)
    return None


def _returns(record: Record, site: Site) -> bool:
    return site.kind == "return" and not _in_custom_function(record, site)


def _in_custom_function(record: Record, site: Site) -> bool:
    """A statement of a method of an `autograd.Function`."""
    node, tree = statement(record, site), tree_of(record, site)
    if node is None or tree is None:
        return False
    classes = (above for above in tree.ancestors(node) if isinstance(above, ast.ClassDef))
    return any(ast.unparse(base).endswith("Function") for cls in classes for base in cls.bases)


def _cause(record: Record, site: Site, moment: Moment, name: str, parent: int, made: int) -> str | None:
    """What ended the history on the way from the parent into the name; None where nothing shows that."""
    node, tree = statement(record, site), tree_of(record, site)
    value = _value_for(node, name)
    if value is None or tree is None:
        return None
    named = {row.name for row in lookup(record).bindings_of[parent]}
    named |= {one.split("[")[0] for one in named}
    for part in ast.walk(value):
        if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) in named:
            how = cause_between(tree, part, value)
            if how is None and moment.inference_mode:
                how = "`inference_mode`"
            elif how is None and not moment.grad_mode:
                how = "`no_grad`"
            if how:
                return how
    dtype = lookup(record).tensors[made].dtype
    if dtype.startswith(("int", "uint", "bool")):
        return f"{outermost(value)}, which gives {dtype} and has no derivative,"
    return None


def _value_for(node: ast.stmt | None, name: str) -> ast.expr | None:
    """The part of a statement's value that this name is given: one element where tuples stand on both sides."""
    value = value_of(node)
    if isinstance(node, ast.Assign) and isinstance(value, ast.Tuple):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = zip(target.elts, value.elts, strict=True)
                return next((given for one, given in pairs if ast.unparse(one) == name), value)
    return value


def derived_from(record: Record, start: int) -> frozenset[int]:
    """A tensor and everything computed from it, tracked or not, as far as `parents` tell."""
    return frozenset(_closed({start}, _children(record)))


def rooted_in(record: Record, call: BackwardCall) -> frozenset[int]:
    """The roots of a call; for a root that has no name, as in `(k * y).sum().backward()`, the tensors it reads."""
    index = lookup(record)
    roots = {root.tensor for root in call.roots if root.tensor is not None}
    if call.site is None or (call.roots and all(index.bindings_of[root] for root in roots) and roots):
        return frozenset(roots)
    site = index.sites[call.site]
    for name in site.reads:
        row = last_bound(record, name, (site.function, "<module>"), call.moment_before)
        if row is not None:
            roots.add(row.tensor)
    return frozenset(roots)


def returned_by(record: Record, tensor: int) -> BackwardCall | None:
    """The `autograd.grad` without `create_graph` whose statement this tensor came from; None if there is none."""
    row, calls = lookup(record).tensors[tensor], _given_back(record)
    at = bisect_right(calls, row.moment, key=lambda one: one[0])
    if not at or row.moment >= calls[at - 1][1] or not is_same_statement(record, row.site, calls[at - 1][2].site):
        return None
    return calls[at - 1][2]


@table
def _given_back(record: Record) -> list[tuple[int, int, BackwardCall]]:
    """Each such call with the moment after it and the one at which the next call begins, in order."""
    found: list[tuple[int, int, BackwardCall]] = []
    until = record.moments[-1].moment + 1 if record.moments else 0
    for call in reversed(record.backward_calls):
        after = None if call.accumulate_grad or call.create_graph else call.moment_after
        if after is not None and call.outcome == "finished" and after < until:
            found.append((after, until, call))
        until = call.moment_before
    return sorted(found, key=lambda one: one[0])


@table
def cut_off_by(record: Record) -> dict[int, Cut]:
    """By tensor the first cut on its way to the root of a backward call."""
    above: defaultdict[int, set[int]] = defaultdict(set)
    for parent, children in _children(record).items():
        for child in children:
            above[child].add(parent)
    leading = _closed({root for call in record.backward_calls for root in rooted_in(record, call)}, above)
    found: dict[int, Cut] = {}
    for cut in sorted(cuts(record).values(), key=lambda cut: cut.tensor):
        if cut.tensor in leading:
            waiting = [cut.source]
            while waiting:
                tensor = waiting.pop()
                if tensor not in found:
                    found[tensor] = cut
                    waiting += above.get(tensor, ())
    return found


def _closed(starts: set[int], following: Mapping[int, Iterable[int]]) -> set[int]:
    seen, waiting = set(starts), list(starts)
    while waiting:
        for one in following.get(waiting.pop(), ()):
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return seen


@table
def _children(record: Record) -> dict[int, set[int]]:
    children: defaultdict[int, set[int]] = defaultdict(set)
    for binding in record.bindings:
        for parent in binding.parents:
            if parent != binding.tensor:
                children[parent].add(binding.tensor)
    for tensor, made_from in unnamed_from(record).items():
        for one in made_from:
            children[one].add(tensor)
    return dict(children)
