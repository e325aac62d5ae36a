"""An editor over real standard input and output: pytest-lsp's client, its traffic kept, with waits that have deadlines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Union

from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

SECONDS = 100.0


class Editor:
    """One editor with a folder open.

    Attributes:
        statuses: What `backprobe/status` said, as `state: message`. traffic: each message, "<-" or "->" and its method.
    """

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.statuses: list[str] = []
        self.traffic: list[tuple[str, str]] = []
        self.refreshed = 0
        self._versions: dict[str, int] = {}
        self._listen()
        self._read_code_actions()

    def _listen(self) -> None:
        client = self.client

        @client.feature("backprobe/status")
        def status(params: Any) -> None:
            self.statuses.append(f"{params.state}: {params.message}")

        @client.feature(lsp.WORKSPACE_INLAY_HINT_REFRESH)
        def hints(_params: Any) -> None:
            self.refreshed += 1

        @client.feature(lsp.WORKSPACE_CODE_LENS_REFRESH)
        def lenses(_params: Any) -> None:
            self.refreshed += 1

        heard, said = client.protocol.handle_message, client.protocol._send_data

        def hear(message: Any) -> None:
            self.traffic.append(("<-", getattr(message, "method", "") or "answer"))
            heard(message)

        def say(data: Any) -> Any:
            self.traffic.append(("->", getattr(data, "method", "") or "answer"))
            return said(data)

        client.protocol.handle_message, client.protocol._send_data = hear, say

    def _read_code_actions(self) -> None:
        """Read a code action with a command as what it is: lsprotocol 2025.0.0 takes it for a bare command."""
        converter = self.client.protocol._converter

        def read(told: Any, _: type) -> lsp.Command | lsp.CodeAction:
            return converter.structure(told, lsp.Command if isinstance(told.get("command"), str) else lsp.CodeAction)

        converter.register_structure_hook(Union[lsp.Command, lsp.CodeAction], read)  # noqa: UP007 - as lsprotocol names it

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def document(self, name: str) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(uri=self.uri(name))

    def open(self, name: str, text: str | None = None) -> None:
        path = self.folder / name
        if text is not None:
            path.write_bytes(text.encode())
        self._versions[name] = 1
        item = lsp.TextDocumentItem(
            uri=self.uri(name), language_id="python", version=1, text=path.read_bytes().decode()
        )
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))

    def edit(self, name: str, edits: list[lsp.TextEdit]) -> None:
        """As an editor applies them: none moves another."""
        self._versions[name] += 1
        backwards = sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                text_document=lsp.VersionedTextDocumentIdentifier(uri=self.uri(name), version=self._versions[name]),
                content_changes=[
                    lsp.TextDocumentContentChangePartial(range=edit.range, text=edit.new_text) for edit in backwards
                ],
            )
        )

    def insert(self, name: str, line: int, character: int, text: str) -> None:
        place = lsp.Position(line=line, character=character)
        self.edit(name, [lsp.TextEdit(range=lsp.Range(start=place, end=place), new_text=text)])

    def save(self, name: str, text: str | None = None) -> None:
        if text is not None:
            (self.folder / name).write_bytes(text.encode())
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=self.document(name)))

    def list_diagnostics(self, name: str) -> list[tuple[Any, int]]:
        """Codes and lines, from 1, of what is shown of a file now."""
        found = self.client.diagnostics.get(self.uri(name), ())
        return [(diagnostic.code, diagnostic.range.start.line + 1) for diagnostic in found]

    def diagnostic(self, name: str, code: str) -> lsp.Diagnostic:
        return next(diagnostic for diagnostic in self.client.diagnostics[self.uri(name)] if diagnostic.code == code)

    async def hints(self, name: str, lines: int = 10_000) -> list[tuple[int, Any]]:
        whole = lsp.Range(start=lsp.Position(line=0, character=0), end=lsp.Position(line=lines, character=0))
        asked = lsp.InlayHintParams(text_document=self.document(name), range=whole)
        found = await self.client.text_document_inlay_hint_async(asked) or ()
        return [(hint.position.line + 1, hint.label) for hint in found]

    async def actions(self, name: str, diagnostic: lsp.Diagnostic) -> list[Any]:
        context = lsp.CodeActionContext(diagnostics=[diagnostic])
        asked = lsp.CodeActionParams(text_document=self.document(name), range=diagnostic.range, context=context)
        return list(await self.client.text_document_code_action_async(asked) or ())

    async def hover(self, name: str, position: lsp.Position) -> str:
        found = await self.client.text_document_hover_async(
            lsp.HoverParams(text_document=self.document(name), position=position)
        )
        return "" if found is None else found.contents.value

    async def lenses(self, name: str) -> list[tuple[int, str]]:
        found = await self.client.text_document_code_lens_async(lsp.CodeLensParams(text_document=self.document(name)))
        return [(lens.range.start.line + 1, lens.command.title) for lens in found or () if lens.command]

    async def command(self, name: str, *arguments: Any) -> Any:
        asked = lsp.ExecuteCommandParams(command=name, arguments=list(arguments))
        return await self.client.workspace_execute_command_async(asked)

    def configure(self, **settings: Any) -> None:
        self.client.workspace_did_change_configuration(
            lsp.DidChangeConfigurationParams(settings={"backprobe": settings})
        )

    @property
    def tokens(self) -> list[str | int]:
        """Of the progress that was shown, in order."""
        return list(self.client.progress_reports)

    @property
    def messages(self) -> list[str]:
        """What was shown to the user."""
        return [message.message for message in self.client.messages]

    async def wait_until(self, condition: Callable[[], Any], what: str) -> Any:
        """What the condition gives once it is true."""
        deadline = time.monotonic() + SECONDS
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what}: {self.statuses} {self.messages} {self.client.diagnostics}"
            await asyncio.sleep(0.02)
        return found

    async def status(self, beginning: str, after: int = 0) -> str:
        """The first status that begins so, behind so many."""
        found = lambda: next((status for status in self.statuses[after:] if status.startswith(beginning)), None)  # noqa: E731
        return await self.wait_until(found, f"status {beginning}")


@contextlib.asynccontextmanager
async def editor(
    folder: Path, home: Path, settings: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Editor]:
    """An editor that has started `backprobe lsp` and opened a folder; both end with the block."""
    client = make_test_lsp_client()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BACKPROBE_")}
    given = inherited | {"BACKPROBE_HOME": str(home)} | dict(environment or {})
    await client.start_io(sys.executable, "-m", "backprobe", "lsp", env=given)
    opened = Editor(client, folder)
    capabilities = client_capabilities("visual-studio-code")
    assert capabilities.workspace is not None
    capabilities.workspace.inlay_hint = lsp.InlayHintWorkspaceClientCapabilities(refresh_support=True)
    try:
        await client.initialize_session(
            lsp.InitializeParams(
                capabilities=capabilities,
                root_uri=folder.as_uri(),
                initialization_options=dict(settings or {}),
            )
        )
        await opened.wait_until(lambda: opened.statuses, "a first status")
        yield opened
        await client.shutdown_session()
        assert client._server is not None and client._server.returncode == 0
    finally:
        if client._server is not None and client._server.returncode is None:
            client._server.kill()
        await client.stop()
