"""The statement that had called a function when one of its statements ran, where the source calls it several times.

def toggle(net, on):
    for p in net.parameters():
        p.requires_grad_(on)
toggle(critic, False)         # this one froze the critic
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.scopes import Function, names, scope_of
from backprobe.rules.analysis.source.syntax import site_at, site_of
from backprobe.rules.analysis.training.enclosing_loops import called_from

if TYPE_CHECKING:
    from backprobe.record import Record, Site


def statement_calling(record: Record, site: int, moment: int) -> Site | None:
    """The statement that had called the function of a site when it ran there, as far as what came before tells.

    Of the calls in the function that ran last, the first one behind its last statement that left a moment. None: there
    is none, as in a further turn of a loop whose call stands above that statement.
    """
    here = site_of(record, site)
    before = _last_outside(record, here, moment)
    file = names(record).get(here.source)
    if before is None or file is None:
        return None
    scope = before.function.rpartition(".")[2]
    calls = file.calls.get(here.function.rpartition(".")[2], [])
    behind = [one for one in calls if before.line <= one.lineno and _name_of(scope_of(file.tree, one)) == scope]
    if not behind:
        return None
    above = file.tree.ancestors(min(behind, key=lambda one: one.lineno))
    around = next((one for one in above if isinstance(one, ast.stmt)), None)
    return None if around is None else site_at(record, around)


def statement_beside(record: Record, site: int, moment: int, other: int) -> Site | None:
    """The call in the function of another site that led to a statement: what ran too early, or too late, beside it.

    None: both stand in one function, or no chain of calls leads from there to here, as far as it can be told.
    """
    there, here = site_of(record, other), site_of(record, site)
    if (here.function, here.source) == (there.function, there.source):
        return None
    for _ in range(_DEPTH):
        node = called_from(record, here.site)
        above = None if node is None else site_at(record, node)
        above = above or statement_calling(record, here.site, moment)
        if above is None or (above.function, above.source) == (there.function, there.source):
            return above
        here = above
    return None


_DEPTH: Final = 4
"""Calls that are followed."""


def _last_outside(record: Record, here: Site, moment: int) -> Site | None:
    """The last statement before a moment that stands in another function."""
    rows = (row for row in reversed(record.moments) if row.moment < moment)
    sites = (site_of(record, row.site) for row in rows if row.site is not None)
    return next((one for one in sites if one.function != here.function), None)


def _name_of(scope: ast.AST) -> str:
    return scope.name if isinstance(scope, Function) else "<module>"
