"""Where a value that a module computed lost its history: the parameters of a module have no name in the statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import outermost
from backprobe.rules.analysis.source.syntax import statement_at, value_of
from backprobe.rules.analysis.training.grad_modes import switched_off_at
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record

_FURTHEST: Final = 16
"""Statements that are followed back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCut:
    """The statement that called the module; region: the `with` or decorator that switched tracking off, if one did."""

    site: int
    how: str
    region: Region | None


def module_cut_above(record: Record, tensor: int) -> ModuleCut | None:
    """The nearest statement behind an untracked tensor that ran a module with parameters that require grad."""
    index = lookup(record)
    waiting, seen = [tensor], {tensor}
    for _ in range(_FURTHEST):
        if not waiting:
            break
        one = waiting.pop(0)
        site = index.tensors[one].site
        calls = [] if site is None else _tracking(record).get(site, [])
        if site is not None and calls:
            if calls[0].grad_mode:
                return ModuleCut(site=site, how=outermost(value_of(statement_at(record, site))), region=None)
            off = switched_off_at(record, site)
            how = off[1] if off else "inference_mode" if _is_inference(record, site) else "no_grad"
            return ModuleCut(site=site, how=f"`{how}`", region=off[0] if off else None)
        new = [parent for row in index.bindings_of[one][:1] for parent in row.parents if parent not in seen]
        seen.update(new)
        waiting += new
    return None


def _is_inference(record: Record, site: int) -> bool:
    return any(row.inference_mode for row in record.moments if row.site == site)


@table
def _tracking(record: Record) -> dict[int, list[ModuleCall]]:
    """By statement the calls of modules that hold parameters which require grad."""
    wanted = {row.module for row in record.modules if any(one.requires_grad for one in row.parameters)}
    found: dict[int, list[ModuleCall]] = {}
    for call in record.module_calls:
        if call.module in wanted and call.site is not None:
            found.setdefault(call.site, []).append(call)
    return found
