"""Where tracking ends: statements that read a tracked tensor and give an untracked one."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.causes import cause_between
from backprobe.rules.expressions import outermost
from backprobe.rules.ingredients import unnamed_from
from backprobe.rules.left_tensors import left_tensors
from backprobe.rules.lookup import bindings_named, lookup
from backprobe.rules.steps import state_at
from backprobe.rules.syntax import is_same_statement, statement, tree_of, value_of
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Mode, Moment, Record, Site
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
    found, index = cuts(record), lookup(record)
    seen, level = {tensor}, [tensor]
    while level and len(seen) < _ABOVE:
        for one in level:
            if one in found:
                return found[one]
        level = [p for one in level for row in index.bindings_of[one][:1] for p in row.parents if p not in seen]
        level = [one for one in dict.fromkeys(level) if _is_untracked(record, one)]
        seen.update(level)
    return None


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


def mode_off(record: Record, moment: int) -> Mode | None:
    """What switched gradients off for this moment: the last switch still in force."""
    found = [
        row
        for row in record.modes
        if row.kind in ("grad", "inference")
        and row.after == ("False" if row.kind == "grad" else "True")
        and row.moment is not None
        and row.moment <= moment
        and (row.until is None or moment <= row.until)
    ]
    return found[-1] if found else None


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
    children = _children(record)
    seen, waiting = {start}, [start]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return frozenset(seen)


def rooted_in(record: Record, call: BackwardCall) -> frozenset[int]:
    """The roots of a call; for a root that has no name, as in `(k * y).sum().backward()`, the tensors it reads."""
    index = lookup(record)
    roots = {root.tensor for root in call.roots if root.tensor is not None}
    if call.site is None or (call.roots and all(index.bindings_of[root] for root in roots) and roots):
        return frozenset(roots)
    site = index.sites[call.site]
    for name in site.reads:
        rows = [
            row
            for row in bindings_named(record)[name]
            if row.moment <= call.moment_before and row.function in (site.function, "<module>")
        ]
        if rows:
            roots.add(rows[-1].tensor)
    return frozenset(roots)


def returned_by(record: Record, tensor: int) -> BackwardCall | None:
    """The `autograd.grad` without `create_graph` whose statement this tensor came from; None if there is none."""
    row = lookup(record).tensors[tensor]
    for call in record.backward_calls:
        if call.accumulate_grad or call.create_graph or call.outcome != "finished" or call.moment_after is None:
            continue
        following = (other.moment_before for other in record.backward_calls if other.call > call.call)
        until = next(following, record.moments[-1].moment + 1)
        if call.moment_after <= row.moment < until and is_same_statement(record, row.site, call.site):
            return call
    return None


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
