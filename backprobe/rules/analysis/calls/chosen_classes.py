"""Where a program chose a class that it does not call by its name.

ACTIVATIONS = {"sigmoid": nn.Sigmoid, "relu": nn.ReLU}
activation: str = "sigmoid"              # here
layers.append(ACTIVATIONS[config.activation]())
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import last_name, names
from backprobe.rules.analysis.source.syntax import trees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backprobe.record import Record
    from backprobe.rules.analysis.source.syntax import Tree


def chosen_class(record: Record, name: str) -> tuple[int, ast.expr] | None:
    """The number of a source and the expression in it that chose a class; None where none does.

    The class itself where it is handed on; of a class in a dict the one place that writes its key, if there is one
    alone; of one that is named by a text only, that text.
    """
    handed: list[tuple[int, ast.expr]] = []
    keys: set[str] = set()
    for number, file in names(record).items():
        named = (one for (_scope, read), rows in file.loads.items() if read == name for one in rows)
        for one in (*file.attributes.get(name, ()), *named):
            above = file.tree.parents.get(one)
            if isinstance(above, ast.Dict) and one in above.values:
                key = above.keys[above.values.index(one)]
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    keys.add(key.value)
                handed.append((number, one))
            elif not _is_asked(file.tree, one):
                handed.append((number, one))
    written = [place for number, tree in trees(record).items() for place in _texts(tree, keys or {name}, number)]
    if len(written) == 1 and (keys or not handed):
        return written[0]
    return min(handed, key=lambda place: (place[0], place[1].lineno)) if handed else None


def _is_asked(tree: Tree, node: ast.AST) -> bool:
    """`isinstance(module, nn.Sigmoid)`, `type(module) is nn.Sigmoid`, or an annotation."""
    for above in tree.ancestors(node):
        if isinstance(above, ast.stmt):
            return isinstance(above, ast.AnnAssign) and any(one is node for one in ast.walk(above.annotation))
        if isinstance(above, ast.Compare | ast.arg | ast.MatchClass):
            return True
        if isinstance(above, ast.Call) and last_name(above.func) in ("isinstance", "issubclass"):
            return True
    return False


def _texts(tree: Tree, wanted: set[str], number: int) -> Iterator[tuple[int, ast.expr]]:
    """Where one of some texts is written as a value: not as a key, and not to be compared with."""
    for one in tree.nodes:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value in wanted:
            above = tree.parents.get(one)
            if isinstance(above, ast.Compare | ast.MatchValue) or (isinstance(above, ast.Dict) and one in above.keys):
                continue
            yield number, one
