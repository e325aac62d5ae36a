"""Where tracking ends: statements that read a tracked tensor and give an untracked one."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.lookup import bindings_named, lookup
from backprobe.rules.steps import state_at
from backprobe.rules.syntax import Tree, is_same_statement, statement, tree_of, value_of
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Moment, Record, Site

_CAUSES: Final = {
    "detach": "`.detach()`",
    "detach_": "`.detach_()`",
    "data": "`.data`",
    "item": "`.item()`",
    "numpy": "`.numpy()`",
    "tolist": "`.tolist()`",
    "tensor": "`torch.tensor()`",
    "argmax": "`argmax`, which has no derivative,",
    "argmin": "`argmin`, which has no derivative,",
    "long": "`.long()`, which has no derivative,",
    "int": "`.int()`, which has no derivative,",
    "bool": "`.bool()`, which has no derivative,",
}

_NO_ELEMENTS: Final = frozenset({
    "shape", "size", "dim", "ndim", "numel", "nelement", "dtype", "device", "layout", "grad", "grad_fn", "is_leaf",
    "requires_grad", "len", "type", "isinstance", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like",
    "randn_like", "randint_like", "new_zeros", "new_ones", "new_empty", "new_full", "zeros", "ones", "empty", "rand",
    "randn", "randint", "eye", "arange",
})  # fmt: skip
"""What reads of a tensor, or makes from it, something that its elements do not go into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A statement that made an untracked tensor from a tracked one.

    Attributes:
        tensor: What came out; source: the tracked one that went in.
        how: Its cause in words, as far as the statement or the grad mode shows it.
    """

    tensor: int
    source: int
    site: int
    how: str


@table
def cuts(record: Record) -> dict[int, Cut]:
    """The cut at which each untracked tensor lost its history, by the tensor that came out; none without a cause.

    A name that a statement reads is no cause: its shape may be all that was asked of it.
    """
    found: dict[int, Cut] = {}
    seen: set[int] = set()
    for binding in record.bindings:
        state = state_at(record, binding.tensor, binding.moment)
        if state is None or state.requires_grad or binding.tensor in seen:
            continue
        seen.add(binding.tensor)
        for parent in binding.parents:
            before = state_at(record, parent, binding.moment)
            if parent == binding.tensor or before is None or not before.requires_grad:
                continue
            cut = _made_at(record, binding, parent)
            if cut is not None:
                found[binding.tensor] = cut
                break
    return found


def _made_at(record: Record, binding: Binding, parent: int) -> Cut | None:
    """The cut at the binding's own statement, or at the `return` that its value came from."""
    index = lookup(record)
    tensor = index.tensors[binding.tensor]
    places = [(binding.site, binding.moment)]
    if tensor.site is not None and tensor.site != binding.site and index.sites[tensor.site].kind == "return":
        places.insert(0, (tensor.site, tensor.moment))
    for site, moment in places:
        how = _cause(record, index.sites[site], index.moments[moment], binding.name, parent)
        if how is not None:
            return Cut(tensor=binding.tensor, source=parent, site=site, how=how)
    return None


def _cause(record: Record, site: Site, moment: Moment, name: str, parent: int) -> str | None:
    """What ended the history on the way from the parent into the name; None where nothing shows that."""
    node, tree = statement(record, site), tree_of(record, site)
    value = _value_for(node, name)
    if value is None or tree is None:
        return None
    named = {row.name for row in lookup(record).bindings_of[parent]}
    named |= {one.split("[")[0] for one in named}
    for part in ast.walk(value):
        if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) in named:
            how = _on_the_way(tree, part, value)
            if how is None and moment.inference_mode:
                how = "`inference_mode`"
            elif how is None and not moment.grad_mode:
                how = "`no_grad`"
            if how:
                return how
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


def _on_the_way(tree: Tree, part: ast.expr, top: ast.expr) -> str | None:
    """The first cause between an operand and the whole; "" if no element of it gets there, None if nothing is seen."""
    inner: ast.AST = part
    for above in () if part is top else tree.ancestors(part):
        name = _name_of(above, inner)
        if name in _NO_ELEMENTS or (isinstance(above, ast.IfExp) and inner is above.test):
            return ""
        if name in _CAUSES:
            return _CAUSES[name]
        if isinstance(above, ast.Compare):
            return "a comparison, which has no derivative,"
        if above is top:
            break
        inner = above
    return None


def _name_of(above: ast.AST, inner: ast.AST) -> str:
    """The attribute read of what is inside, or the function that is called with it."""
    called = above.func if isinstance(above, ast.Call) and inner is not above.func else above
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


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
    return dict(children)
