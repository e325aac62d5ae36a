"""What an editor shows behind the lines of a script, as text: made by a real session of the language server."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

FRAME: Final = "<!-- editor: written by `make docs` -->"
FRAME_END: Final = "<!-- end of editor -->"
SCRIPT: Final = """\
import torch

w = torch.ones(3, requires_grad=True).to(torch.float64)
v = torch.full((3,), 2.0, requires_grad=True)
loss = (w * v).sum()
loss.backward(retain_graph=True)
print(w.grad)
"""
SECONDS: Final = 120
WIDEST: Final = 96


def with_frame(text: str) -> str:
    """A page with what an editor shows between its marks."""
    before, mark, rest = text.partition(FRAME)
    if not mark:
        return text
    _, _, after = rest.partition(FRAME_END)
    with tempfile.TemporaryDirectory() as folder:
        shown = asyncio.run(asyncio.wait_for(_session(Path(folder)), SECONDS))
    return f"{before}{FRAME}\n```\n{shown}\n```\n{FRAME_END}{after}"


async def _session(folder: Path) -> str:
    """The lines of the script, its hints behind them, and the findings below, once a save has run it."""
    path = folder / "train.py"
    path.write_text(SCRIPT)
    client, found = LanguageClient("docs", "0"), asyncio.get_running_loop().create_future()

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(params: lsp.PublishDiagnosticsParams) -> None:
        if params.diagnostics and not found.done():
            found.set_result(params.diagnostics)

    @client.feature("backprobe/status")
    def on_state(params: Any) -> None:
        if params.state == "trouble" and not found.done():
            found.set_exception(RuntimeError(params.message))

    @client.feature(lsp.WINDOW_LOG_MESSAGE)
    def logged(_params: lsp.LogMessageParams) -> None:
        """Not of the frame."""

    environment = os.environ | {"BACKPROBE_HOME": str(folder / "home"), "PYTHONWARNINGS": "ignore"}
    await client.start_io(sys.executable, "-m", "backprobe", "lsp", env=environment)
    options = {"trusted": True, "entries": ["train.py"], "seconds": SECONDS}
    await client.initialize_async(
        lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(), root_uri=folder.as_uri(), initialization_options=options
        )
    )
    client.initialized(lsp.InitializedParams())
    item = lsp.TextDocumentItem(uri=path.as_uri(), language_id="python", version=1, text=SCRIPT)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    document = lsp.TextDocumentIdentifier(uri=item.uri)
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=document))
    diagnostics = await found
    whole = lsp.Range(start=lsp.Position(line=0, character=0), end=lsp.Position(line=99, character=0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(text_document=document, range=whole))
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return _draw_frame(hints or (), diagnostics)


def _draw_frame(hints: Any, diagnostics: Any) -> str:
    behind = {hint.position.line: str(hint.label) for hint in hints}
    lines = SCRIPT.splitlines()
    width = max(map(len, lines)) + 2
    drawn = [
        f"{n + 1} | {line:{width}}<- {behind[n]}" if n in behind else f"{n + 1} | {line}"
        for n, line in enumerate(lines)
    ]
    for diagnostic in diagnostics:
        first = diagnostic.message.split("\n")[0]
        drawn.append(f"    line {diagnostic.range.start.line + 1}  {diagnostic.code}  {first}"[:WIDEST])
    return "\n".join(row.rstrip() for row in drawn)
