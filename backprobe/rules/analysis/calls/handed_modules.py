"""The module that a path of the program names, `encoder`, `self.model.trunk`, as far as the record tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.handed_arguments import all_handed_in
from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.modules.second_names import ModuleName, module_names
from backprobe.rules.analysis.rows.lookup import lookup

if TYPE_CHECKING:
    from backprobe.record import Module, Record, Site


def module_called(record: Record, path: str) -> Module | None:
    """The module of that name: a binding, or a path below one."""
    roots = {module.binding: module for module in record.modules if module.binding}
    for module in record.modules:
        names = {module.binding} | {f"{root}.{module.fqn}" for root in roots if module.fqn}
        if path in names:
            return module
    return None


def modules_handed(record: Record, site: Site, path: str) -> list[Module]:
    """The modules that callers gave a function for the name that a path begins with; none where one is not known.

    Of a path below `self` the one that statements of the class named so.
    """
    root, dot, rest = path.partition(".")
    if root == "self":
        return list(_named(record, site, path))
    given = all_handed_in(record, site, root)
    found = [_at(record, one.site, f"{one.text}{dot}{rest}") for one in given]
    return [one for one in found if one is not None] if all(found) else []


def _at(record: Record, site: Site, path: str) -> Module | None:
    """The module of a path in the function of a site, or in another method of its class, or in the whole program."""
    return next(_named(record, site, path), None) or module_called(record, path)


def _named(record: Record, site: Site, path: str) -> Iterator[Module]:
    """The only module that statements in sight gave that name, or what is below one."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        name, rest = ".".join(parts[:length]), parts[length:]
        held = {one for one, rows in module_names(record).items() for row in rows if _sees(record, site, name, row)}
        if len(held) != 1:
            continue
        module = modules_by_number(record).get(held.pop())
        if module is None:
            return
        key = ".".join([*([module.fqn] if module.fqn else []), *rest])
        below = [module] if not rest else [one for one in record.modules if one.fqn == key]
        if len(below) == 1:
            yield below[0]
        return


def _sees(record: Record, site: Site, name: str, row: ModuleName) -> bool:
    """The name that a statement gave is in sight at a site: its function's, its class's, or the module's."""
    if row.name != name:
        return False
    there = lookup(record).sites[row.site].function
    if name.startswith("self."):
        return there.rpartition(".")[0] == site.function.rpartition(".")[0]
    return there in (site.function, "<module>")


def parameters_of_module(record: Record, module: Module) -> set[int]:
    """The parameters of a module and of what it contains."""
    prefix = module.fqn or ""
    found: set[int] = set()
    for other in record.modules:
        inside = other.fqn is not None and (other.fqn == prefix or other.fqn.startswith(f"{prefix}."))
        if other.module == module.module or (module.binding and not prefix) or inside:
            found |= {row.tensor for row in other.parameters if row.tensor is not None}
    return found
