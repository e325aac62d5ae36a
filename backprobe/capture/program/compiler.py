"""From a user's file to tapped code."""

from __future__ import annotations

import ast
import os
from importlib.util import decode_source
from types import CodeType
from typing import TYPE_CHECKING, Any

from backprobe.capture.program.importer import remember
from backprobe.capture.program.pickling import PlainCodes
from backprobe.capture.rewriting.rewriter import Rewriter
from backprobe.capture.rewriting.sites import Sites
from backprobe.capture.torch_access.fence import Guard

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession


class Tapping:
    """Compiles the files of a program.

    Attributes:
        recorder: Whose taps they carry: that of this process.
        plain: What was compiled, without taps.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self.recorder, self.plain = recorder, PlainCodes()

    def __call__(self, data: bytes, filename: str, path: str) -> CodeType:
        """Compile the tapped code of a file, or of the text that replaces it in this run."""
        if (text := self._overlaid(filename)) is not None:
            data = text.encode("utf-8", "surrogatepass")
            remember(filename, text)
        self.plain.add(filename, data)
        return compile_source(data, filename, path, self.recorder.sites, self.recorder.guard)

    def _overlaid(self, filename: str) -> str | None:
        overlay = self.recorder.options.overlay
        return overlay.get(os.path.realpath(filename)) if overlay else None


def compile_source(data: bytes, filename: str, path: str, sites: Sites, guard: Guard) -> CodeType:
    """Compile the tapped code of a source file; if tapping fails, the file's own code, and the record says why.

    Args:
        filename: What the code objects are to carry. path: The file's place in the project, for the record.

    Raises:
        SyntaxError, ValueError: what plain compilation raises.
    """
    tree: Any = compile(
        data, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True
    )  # not ast.parse: its frame would show
    text = decode_source(data)
    tapped, why = _compile_tapped_code(tree, filename, path, text, sites, guard)
    if tapped is not None:
        return tapped
    # outside of the handler: an error that plain compilation raises must not get Backprobe's error as its context
    plain = compile(data, filename, "exec", dont_inherit=True)
    guard.apart(lambda: sites.add_source(filename, path, text, rewritten=False, why=why))
    return plain


def _compile_tapped_code(
    tree: ast.Module, filename: str, path: str, text: str, sites: Sites, guard: Guard
) -> tuple[CodeType | None, str]:
    """Compile the tapped code; if there is none, return None and why."""
    try:
        sites.add_source(filename, path, text)
        tapped = ast.fix_missing_locations(Rewriter(sites, filename).module(tree))
        return compile(tapped, filename, "exec", dont_inherit=True), ""
    except SyntaxError as error:  # too many nested blocks, with ours among them
        return None, f"its tapped form does not compile: {error}"
    except RecursionError:
        return None, "its expressions are nested too deeply to be tapped"
    except Exception as error:
        guard.note(error)
        return None, f"our rewriter failed: {type(error).__name__}"
