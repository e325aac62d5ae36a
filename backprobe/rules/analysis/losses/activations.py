"""Where a softmax or sigmoid of the graph stands in the program, what it is called there, and its dimension."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import node_of, op, operation_name, tensors_of, walked
from backprobe.rules.analysis.losses.loss_calls import values_of
from backprobe.rules.analysis.modules.module_outputs import innermost_call, parent_of
from backprobe.rules.analysis.modules.training_modes import written_call
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import last_name, names
from backprobe.rules.analysis.source.syntax import number_at, region_in, site_of, statement, trees
from backprobe.rules.analysis.tensors.parents import operands_below
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, Record, WatchedCall

_NAMES: Final = {
    "Softmax": ("softmax", "softmin", "Softmax", "Softmin"),
    "LogSoftmax": ("log_softmax", "LogSoftmax"),
    "Sigmoid": ("sigmoid", "Sigmoid", "sigmoid_", "expit"),
}
"""How the program may write the operation of a node."""

_TOLERANCE: Final = 1e-3
"""By how much a sum of float32 probabilities may miss their number, as a share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an operation stands.

    Attributes:
        text: How the program writes it: `torch.softmax(z, dim=1)`, `nn.Sigmoid()`, `self.act(z)`.
        built: Where the module is built whose call stands here; None: it is no such call.
    """

    site: int
    region: Region | None
    text: str
    built: int | None = None


def place_of(record: Record, node: int) -> Place | None:
    """Where the operation of a node stands: where its module is built, else its call; None if it is not known."""
    index = lookup(record)
    row = index.nodes[node]
    written = _NAMES.get(op(row), ())
    called = innermost_call(record, node)
    module = None if called is None else _modules(record).get(called.module)
    if module is not None and not module.user_code and module.cls in written and module.site is not None:
        call = _built(record, module)
        region = None if call is None else region_in(record, site_of(record, module.site).source, call)
        text = f"nn.{module.cls}" if call is None else ast.unparse(call)
        elsewhere = _built_elsewhere(record, module) if call is None else None
        return elsewhere or Place(site=module.site, region=region, text=text)
    site = row.site if row.site is not None else _site_of_result(record, node)
    if site is None:
        return None
    calls = _calls(record, site, written)
    if len(calls) != 1:
        return Place(site=site, region=None, text=written[0] if written else operation_name(row.type))
    return Place(site=site, region=region_in(record, site_of(record, site).source, calls[0]), text=_short(calls[0]))


def use_of(record: Record, node: int) -> Place | None:
    """Where the program applies the operation of a node: as `place_of`, but for a module that its own code calls.

    `self.act = nn.Softmax(1)` is used where `forward` says `self.act(z)`; a part of an `nn.Sequential` is called by
    torch and stands where it is built.
    """
    place, called = place_of(record, node), innermost_call(record, node)
    module = None if called is None else _modules(record).get(called.module)
    if place is None or called is None or module is None or module.site != place.site or called.site is None:
        return place
    around = parent_of(record, called)
    owner = None if around is None else _modules(record).get(around.module)
    written = written_call(record, called)
    if called.site == place.site or (owner is not None and not owner.user_code) or written is None:
        return place
    text = ast.unparse(written[1])
    short = text if len(text) <= 60 or not isinstance(written[1], ast.Call) else f"{ast.unparse(written[1].func)}(...)"
    return Place(site=called.site, region=region_in(record, *written), text=short, built=place.site)


def trains_elsewhere(record: Record, tensor: int, statement_of_loss: int | None) -> bool:
    """Another statement than that of the loss made something of an activation's result that a backward call walked.

    Then its values are wanted, and the loss is the place that should have been given something else.
    """
    below = operands_below(record)
    return any(
        row.tensor is not None
        and row.statement != statement_of_loss
        and row.requires_grad
        and tensor in below[row.operation]
        and node_of(record, row.tensor) in walked(record)
        for row in record.operations
    )


def _short(call: ast.Call) -> str:
    text = ast.unparse(call)
    return text if len(text) <= 60 else f"{ast.unparse(call.func)}(...)"


def _site_of_result(record: Record, node: int) -> int | None:
    tensors = lookup(record).tensors
    return next((tensors[one].site for one in tensors_of(record).get(node, ()) if tensors[one].site is not None), None)


@table
def _modules(record: Record) -> dict[int, Module]:
    return {module.module: module for module in record.modules}


def _calls(record: Record, site: int, names: tuple[str, ...]) -> list[ast.Call]:
    node = statement(record, site_of(record, site))
    calls = [part for part in ast.walk(node or ast.Pass()) if isinstance(part, ast.Call)]
    return [call for call in calls if last_name(call.func) in names]


def built_call(record: Record, module: int) -> ast.Call | None:
    """The call that builds a module, by its number; None where it is not seen in the source."""
    row = _modules(record).get(module)
    return None if row is None else _built(record, row)


def _built_elsewhere(record: Record, module: Module) -> Place | None:
    """The only call of the program that builds such a module, where the statement that first held it has none.

    `layers.append(nn.Softmax(-1))` in a helper, and `nn.Sequential(*layers)` behind it.
    """
    found = [(number, one) for number, file in names(record).items() for one in file.calls.get(module.cls, ())]
    if len(found) != 1:
        return None
    number, call = found[0]
    around = next((one for one in trees(record)[number].ancestors(call) if isinstance(one, ast.stmt)), None)
    site = number_at(record, around)
    region = region_in(record, number, call)
    return None if site is None else Place(site=site, region=region, text=ast.unparse(call))


def _built(record: Record, module: Module) -> ast.Call | None:
    """The call that builds a module, of several in one statement by their order."""
    if module.site is None:
        return None
    calls = sorted(_calls(record, module.site, (module.cls,)), key=lambda call: (call.lineno, call.col_offset))
    alike = [one.module for one in record.modules if one.site == module.site and one.cls == module.cls]
    return calls[alike.index(module.module)] if len(calls) == len(alike) else None


def dim_of(record: Record, node: int) -> int | None:
    """The dimension of a softmax, counted from 0; None if it cannot be told.

    From the watched call that made it; else as written; else from its values: the sum of a softmax over dimension d is
    numel / size of d.
    """
    index = lookup(record)
    row = index.nodes[node]
    shape = row.outputs[0].shape if row.outputs else ()
    for tensor in tensors_of(record).get(node, ()):
        if tensor in _softmaxes(record):
            dim = _softmaxes(record)[tensor].arguments.get("dim")
            return _counted(dim, shape) if type(dim) is int else None
    site = row.site if row.site is not None else _site_of_result(record, node)
    if site is not None:
        calls = _calls(record, site, _NAMES.get(op(row), ()))
        said = {_written_dim(call) for call in calls}
        if len(said) == 1 and None not in said:
            return _counted(said.pop(), shape)
    return _measured_dim(record, node, shape)


@table
def _softmaxes(record: Record) -> dict[int, WatchedCall]:
    """The watched calls of softmax, by their results."""
    calls = [call for call in record.watched_calls if call.function.endswith("softmax")]
    return {tensor: call for call in calls for tensor in call.outputs}


def _counted(dim: int | None, shape: tuple[int, ...]) -> int | None:
    if dim is None or not -len(shape) <= dim < len(shape):
        return None
    return dim % len(shape)


def _written_dim(call: ast.Call) -> int | None:
    named = next((one.value for one in call.keywords if one.arg == "dim"), None)
    numbers = [value for one in (named, *call.args) if one is not None and (value := _integer(one)) is not None]
    return numbers[0] if numbers else None


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if type(value) is int else None


def _measured_dim(record: Record, node: int, shape: tuple[int, ...]) -> int | None:
    index = lookup(record)
    for tensor in tensors_of(record).get(node, ()):
        row = index.tensors[tensor]
        stats = values_of(record, tensor, row.moment)
        if op(index.nodes[node]) != "Softmax" or stats is None or not stats.sum or stats.counted != row.numel:
            continue
        size = row.numel / stats.sum
        fitting = [at for at, length in enumerate(shape) if abs(length - size) <= _TOLERANCE * size]
        if len(fitting) == 1:
            return fitting[0]
    return None
