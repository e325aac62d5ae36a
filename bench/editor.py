"""Save to diagnostics in an editor on a warm service, beside `python file.py`; and hints asked again and again.

usage: python -m bench.editor [--pairs 15] [--hints 200]

A pair is one cold run of the interpreter and one save of the same five-line file in an editor over standard input and
output: from `textDocument/didSave` until the diagnostics and the status behind them have come. Which comes first
alternates. Each save differs from the last by a comment, so that no run is a known one.
Processor time is that of the language server and of every process of the service, from the save until a second after
the diagnostics; the client's own is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from bench.service import serving, stores
from bench.submit import SNIPPET, WARM_SECONDS, cold, milliseconds
from bench.tables import middle, spread, table, write

WARM_UPS: Final = 5
PAUSE_SECONDS: Final = 1.0
HINT_PAUSE_SECONDS: Final = 0.1
"""Ten requests a second: what editors were seen to send."""


@dataclass
class Editor:
    """An editor with one file open; `ended` is set when a run's status has come."""

    client: LanguageClient
    path: Path
    ended: asyncio.Event
    server: int = 0

    async def save(self, number: int) -> None:
        """Save another version of the file; over once its result is shown."""
        text = f"{SNIPPET.read_text()}# {number}\n"
        self.path.write_text(text)
        self.ended.clear()
        uri = self.path.as_uri()
        whole = lsp.TextDocumentContentChangeWholeDocument(text=text)
        document = lsp.VersionedTextDocumentIdentifier(uri=uri, version=number + 2)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(text_document=document, content_changes=[whole])
        )
        self.client.text_document_did_save(
            lsp.DidSaveTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=uri))
        )
        await asyncio.wait_for(self.ended.wait(), 120)

    async def hints(self) -> int:
        """How many hints the whole file has now."""
        whole = lsp.Range(start=lsp.Position(line=0, character=0), end=lsp.Position(line=99, character=0))
        document = lsp.TextDocumentIdentifier(uri=self.path.as_uri())
        asked = lsp.InlayHintParams(text_document=document, range=whole)
        return len(await self.client.text_document_inlay_hint_async(asked) or ())


@asynccontextmanager
async def editing(folder: Path, url: str) -> AsyncIterator[Editor]:
    """An editor that has started the language server."""
    client = LanguageClient("bench", "0")
    editor = Editor(client, folder / "train.py", asyncio.Event())
    editor.path.write_text(SNIPPET.read_text())

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(_params: lsp.PublishDiagnosticsParams) -> None:
        """The status behind it says that it is the result's."""

    @client.feature(lsp.WINDOW_LOG_MESSAGE)
    def logged(_params: lsp.LogMessageParams) -> None:
        """Not measured."""

    @client.feature("backprobe/status")
    def on_state(params: Any) -> None:
        if params.state == "idle" and "succeeded" in params.message:
            editor.ended.set()
        elif params.state == "trouble":
            raise RuntimeError(params.message)

    await client.start_io(
        sys.executable, "-m", "backprobe", "lsp", env=os.environ | {"BACKPROBE_HOME": str(folder / "home")}
    )
    editor.server = client._server.pid if client._server else 0  # noqa: SLF001 - pygls keeps it there
    options = {"trusted": True, "entries": ["train.py"], "service": {"url": url}}
    await client.initialize_async(
        lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(), root_uri=folder.as_uri(), initialization_options=options
        )
    )
    client.initialized(lsp.InitializedParams())
    item = lsp.TextDocumentItem(uri=editor.path.as_uri(), language_id="python", version=1, text=editor.path.read_text())
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    yield editor
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def processor_seconds(roots: list[int]) -> float:
    """Of these processes, all that live below them, and all that ended below them."""
    total = 0.0
    for root in roots:
        for member in (process := psutil.Process(root), *process.children(recursive=True)):
            try:
                spent = member.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


async def measure(pairs: int, hints: int, url: str, service: int) -> dict[str, list[float]]:
    """Milliseconds by what was measured."""
    found: dict[str, list[float]] = {name: [] for name in ("python", "save", "processor", "hints")}
    with tempfile.TemporaryDirectory() as folder:
        async with editing(Path(folder), url) as editor:
            for number in range(WARM_UPS):
                await editor.save(number)
            await asyncio.sleep(WARM_SECONDS)
            for number in range(pairs):
                if number % 2:
                    found["python"].append(await asyncio.to_thread(milliseconds, cold))
                await asyncio.sleep(PAUSE_SECONDS)
                before, started = processor_seconds([service, editor.server]), time.perf_counter()
                await editor.save(WARM_UPS + number)
                found["save"].append((time.perf_counter() - started) * 1e3)
                await asyncio.sleep(PAUSE_SECONDS)
                found["processor"].append((processor_seconds([service, editor.server]) - before) * 1e3)
                if not number % 2:
                    found["python"].append(await asyncio.to_thread(milliseconds, cold))
            if not await editor.hints():
                raise RuntimeError("the file has no hints")
            for _ in range(hints):
                await asyncio.sleep(HINT_PAUSE_SECONDS)
                started = time.perf_counter()
                await editor.hints()
                found["hints"].append((time.perf_counter() - started) * 1e3)
    return found


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--hints", type=int, default=200)
    asked = parser.parse_args()
    with stores("embedded") as environment, serving(environment) as service:
        url = f"http://127.0.0.1:{service.port}"
        found = asyncio.run(measure(asked.pairs, asked.hints, url, service.process.pid))
    load = os.getloadavg()[0]
    rows = [
        ("`python file.py`, wall", spread(found["python"])),
        ("save to diagnostics, wall", spread(found["save"])),
        ("the same, processor time of language server and service", spread(found["processor"])),
        ("hints of the file, asked ten times a second, wall at the client", spread(found["hints"], "{:.2f}")),
        ("ratio of the medians, save to `python file.py`", f"{middle(found['save']) / middle(found['python']):.2f}"),
    ]
    body = table(("five lines, embedded service, warm", "ms, median (least to most)"), rows)
    write("editor", "Save to diagnostics in an editor", f"{body}\n\nLoad average at the end: {load:.1f}.")


if __name__ == "__main__":
    main()
