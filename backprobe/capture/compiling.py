"""From a user's file to tapped code."""

from __future__ import annotations

import ast
from importlib.util import decode_source
from types import CodeType
from typing import Any

from backprobe.capture.guard import Guard
from backprobe.capture.rewrite import Rewriter
from backprobe.capture.sites import Sites


def compiled(data: bytes, filename: str, path: str, sites: Sites, guard: Guard) -> CodeType:
    """The tapped code of a source file; where tapping fails, the file's own code, and the record says why.

    Args:
        filename: What the code objects are to carry. path: The file's place in the project, for the record.

    Raises:
        SyntaxError, ValueError: what plain compilation raises.
    """
    tree: Any = compile(
        data, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True
    )  # not ast.parse: its frame would show
    text = decode_source(data)
    try:
        sites.add_source(filename, path, text)
        tapped = ast.fix_missing_locations(Rewriter(sites, filename).module(tree))
        return compile(tapped, filename, "exec", dont_inherit=True)
    except SyntaxError as error:  # too many nested blocks, with ours among them
        plain = compile(data, filename, "exec", dont_inherit=True)
        sites.add_source(filename, path, text, rewritten=False, why=f"its tapped form does not compile: {error}")
        return plain
    except RecursionError:
        plain = compile(data, filename, "exec", dont_inherit=True)
        sites.add_source(
            filename, path, text, rewritten=False, why="its expressions are nested too deeply to be tapped"
        )
        return plain
    except Exception as error:
        guard.note(error)
        plain = compile(data, filename, "exec", dont_inherit=True)
        sites.add_source(filename, path, text, rewritten=False, why=f"our rewriter failed: {type(error).__name__}")
        return plain
