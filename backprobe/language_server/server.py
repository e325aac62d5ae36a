"""The protocol: the requests and answers of an editor, on standard input and output, over pygls."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import platformdirs
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

import backprobe
from backprobe.language_server.actions import actions
from backprobe.language_server.editor_session import Session
from backprobe.language_server.hints import lenses, run_lens
from backprobe.language_server.hovers import hover
from backprobe.language_server.settings import plain_object, settings_from
from backprobe.language_server.workspace import Project, folders_of, path_of
from backprobe.show.plain_text import plain

STATUS: Final = "backprobe/status"
"""A notification of Backprobe: `state` (idle, running, trouble, untrusted) and `message`, for a status bar."""


class Server(LanguageServer):
    """One editor's server.

    Args:
        project: Reads `[tool.backprobe]`. environment: of the process.
    """

    def __init__(self, project: Project, environment: Mapping[str, str]) -> None:
        super().__init__("backprobe", backprobe.__version__)
        self.project, self.environment = project, environment
        self.session: Session | None = None
        self._told_of: str | None = None
        self._tokens: set[str | int] = set()

    def report_server_error(self, error: Exception, source: Any) -> None:  # noqa: ARG002 - as pygls calls it
        """Write an internal error to the editor's log; it is never a pop-up."""
        self.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Error, message=f"backprobe: {error}"))

    # What a session tells its editor

    def publish(self, uri: str, version: int | None, found: list[lsp.Diagnostic]) -> None:
        """See `editor.Editor`."""
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )

    def refresh(self) -> None:
        """See `editor.Editor`."""
        workspace = self.client_capabilities.workspace
        if workspace is None:
            return
        if workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def status(self, state: str, message: str) -> None:
        """See `editor.Editor`."""
        if state == "idle" and not message.endswith(": canceled"):
            self._told_of = None  # what goes wrong next is shown again
        self.protocol.notify(STATUS, {"state": state, "message": plain(message)})
        self.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Info, message=f"{state}: {plain(message)}"))

    def trouble(self, message: str) -> None:
        """See `editor.Editor`."""
        if message != self._told_of:
            self._told_of = message
            told = f"Backprobe: {plain(message)}"
            self.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Warning, message=told))

    @contextlib.asynccontextmanager
    async def progress(self, title: str) -> AsyncIterator[None]:  # type: ignore[override] - pygls has a notification of this name
        """See `editor.Editor`."""
        window = self.client_capabilities.window
        if window is None or not window.work_done_progress:
            yield
            return
        token = f"backprobe-{uuid.uuid4().hex}"
        await self.window_work_done_progress_create_async(lsp.WorkDoneProgressCreateParams(token=token))
        self._tokens.add(token)
        begin = lsp.WorkDoneProgressBegin(title=f"Backprobe: {plain(title)}", cancellable=True)
        self._say(token, begin)
        try:
            yield
        finally:
            self._tokens.discard(token)
            self._say(token, lsp.WorkDoneProgressEnd())

    def _say(self, token: str, value: Any) -> None:
        self.protocol.notify(lsp.PROGRESS, lsp.ProgressParams(token=token, value=value))

    def cancel_run(self, token: str | int) -> None:
        """Cancel the run: the editor's Cancel was pressed."""
        if token in self._tokens and self.session is not None:
            self.session.cancel()

    def configure(self, told: Any) -> None:
        """Take the editor's settings, and say what is wrong with them."""
        settings, wrong = settings_from(told, self.environment)
        if self.session is not None:
            self.session.configure(settings)
        for problem in wrong:
            self.trouble(f"settings: {problem}")

    def opened_session(self) -> Session:
        """Return the session.

        Raises:
            RuntimeError: the editor has not initialized the server.
        """
        if self.session is None:
            raise RuntimeError("the server was not initialized")
        return self.session


def start(project: Project, environment: Mapping[str, str]) -> None:
    """Serve one editor until it says that it is over, or goes."""
    server = Server(project, environment)
    _register_documents(server)
    _register_answers(server)
    _register_commands(server)
    server.start_io()


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("BACKPROBE_HOME") or platformdirs.user_data_dir("backprobe"))


def _register_documents(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri is not None:
            folders = [params.root_uri]
        home = _home(server.environment)
        server.session = Session(server, folders_of(folders), server.project, server.environment, home)
        server.initial = params.initialization_options  # type: ignore[attr-defined] - told of when the editor listens

    @server.feature(lsp.INITIALIZED)
    def start_session(_params: lsp.InitializedParams) -> None:
        session = server.opened_session()
        encoding = server.server_capabilities.position_encoding
        session.encoding = str(getattr(encoding, "value", encoding) or "utf-16")  # type: ignore[assignment] - one of three
        server.configure(plain_object(server.initial))  # type: ignore[attr-defined] - set above

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def change_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        added, removed = (
            folders_of(folder.uri for folder in changed) for changed in (params.event.added, params.event.removed)
        )
        server.opened_session().workspace.change(added=added, removed=removed)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def change_settings(params: lsp.DidChangeConfigurationParams) -> None:
        told = plain_object(params.settings)
        if isinstance(told, Mapping) and "backprobe" in told:
            server.configure(told["backprobe"])

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def open_document(params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        path = path_of(document.uri)
        if path is not None:
            server.opened_session().open_document(path, document.uri, document.text, document.version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def change_document(params: lsp.DidChangeTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None:
            server.opened_session().apply_edits(path, params.text_document.version, list(params.content_changes))

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def save_document(params: lsp.DidSaveTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None:
            server.opened_session().run_saved_document(path)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def close_document(params: lsp.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None:
            server.opened_session().close_document(path)

    @server.feature(lsp.SHUTDOWN)
    async def shut_down(_params: None = None) -> None:
        await server.opened_session().close()

    @server.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel_progress(params: lsp.WorkDoneProgressCancelParams) -> None:
        server.cancel_run(params.token)


def _register_answers(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        path = path_of(params.text_document.uri)
        lines = params.range
        return [] if path is None else server.opened_session().inlay(path, lines.start.line, lines.end.line)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def answer_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        path, session = path_of(params.text_document.uri), server.opened_session()
        result = None if path is None else session.result_of(path)
        document = None if path is None or result is None else session.document(path)
        if path is None or result is None or document is None:
            return None
        wanted = getattr(getattr(server.client_capabilities.text_document, "hover", None), "content_format", None) or ()
        markdown = lsp.MarkupKind.Markdown in wanted
        return hover(document, result, path, params.position, markdown=markdown)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        path, session = path_of(params.text_document.uri), server.opened_session()
        result = None if path is None else session.result_of(path)
        document = None if path is None or result is None else session.document(path)
        if path is None:
            return []
        found = [] if result is None or document is None else lenses(document, result, path)
        return [run_lens(params.text_document.uri), *found] if session.offers_run(path) else found

    kinds = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def answer_code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        path, session = path_of(params.text_document.uri), server.opened_session()
        result = None if path is None else session.result_of(path)
        if path is None or result is None:
            return []
        edits = getattr(server.client_capabilities.workspace, "workspace_edit", None)
        versioned = bool(getattr(edits, "document_changes", False))
        asked = params.context.diagnostics
        found = actions(result, path, asked, session.documents_of(result), versioned=versioned)
        only = params.context.only
        return found if not only else [action for action in found if action.kind in only]


def _register_commands(server: Server) -> None:
    @server.command("backprobe.run")
    def run(uri: str) -> None:
        path = path_of(uri)
        if path is None:
            server.trouble("only files are run from here; in a notebook, `%%backprobe` runs a cell")
            return
        server.opened_session().run_by_command(path)

    @server.command("backprobe.retire")
    def retire(uri: str, fingerprint: str) -> None:
        path = path_of(uri)
        if path is not None:
            server.opened_session().retire_finding(path, fingerprint)

    @server.command("backprobe.cancel")
    def cancel() -> None:
        server.opened_session().cancel()

    @server.command("backprobe.explain")
    async def explain(rule: str) -> str:
        from backprobe.rules.framework.manual import UnknownRule, manual
        from backprobe.show.formats.manual_text import render

        try:
            text = render(manual(rule))
        except UnknownRule as error:
            server.trouble(str(error))
            return ""
        await _show_text(server, f"{manual(rule).rule.name}.txt", text)
        return text

    @server.command("backprobe.openRun")
    async def open_run(page: str) -> None:
        url = server.opened_session().settings.url
        if url is not None and page.startswith(f"{url.rstrip('/')}/runs/"):  # an editor opens no other address for us
            await _show_document(server, lsp.ShowDocumentParams(uri=page, external=True))


async def _show_text(server: Server, name: str, text: str) -> None:
    """Show a text as a file of the user's own folder."""
    path = _home(server.environment) / "editor" / "manuals" / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        server.trouble(f"`{path}` cannot be written ({error.strerror})")
        return
    await _show_document(server, lsp.ShowDocumentParams(uri=path.as_uri(), take_focus=True))


async def _show_document(server: Server, params: lsp.ShowDocumentParams) -> None:
    window = server.client_capabilities.window
    if window is not None and window.show_document is not None and window.show_document.support:
        await server.window_show_document_async(params)
    else:
        server.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Info, message=params.uri))
