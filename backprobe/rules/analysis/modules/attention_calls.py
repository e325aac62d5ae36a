"""Which statements call torch's attention modules, and where these take a mask."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_sites import calls_by_number, modules_by_number
from backprobe.rules.analysis.source.syntax import Tree, number_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record

MASK_PLACES: Final = {
    "MultiheadAttention": (5,),
    "TransformerEncoderLayer": (1,),
    "TransformerEncoder": (1,),
    "TransformerDecoderLayer": (2,),
    "TransformerDecoder": (2,),
    "Transformer": (2, 3),
}
"""The modules that take a mask of places, and where it stands among the arguments."""


def attention_at(record: Record, tree: Tree, node: ast.AST) -> frozenset[str]:
    """The classes of torch's attention modules that the statement around an expression called itself."""
    around = next((above for above in tree.ancestors(node) if isinstance(above, ast.stmt)), None)
    site = number_at(record, around)
    return frozenset() if site is None else _called(record).get(site, frozenset())


@table
def _called(record: Record) -> dict[int, frozenset[str]]:
    """Those classes by the statement that called them: a module in another one of torch's is called by that one."""
    known, calls = modules_by_number(record), calls_by_number(record)
    found: dict[int, frozenset[str]] = {}
    for call in record.module_calls:
        module, above = known.get(call.module), None if call.parent is None else calls.get(call.parent)
        is_inner = above is not None and above.site == call.site
        is_own = module is not None and module.user_code
        if module is not None and call.site is not None and module.cls in MASK_PLACES and not is_own and not is_inner:
            found[call.site] = found.get(call.site, frozenset()) | {module.cls}
    return found
