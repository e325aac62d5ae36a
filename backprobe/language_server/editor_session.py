"""What an editor has open, what was found of it, and what is run when.

open        a stored result of this very text is shown; nothing runs
edit        results move with their lines; a line that was edited loses its own at once; nothing runs
save        an entry point of a trusted workspace runs, in place of the run that goes on; else it is said why not
fix         its finding is no longer shown, before the program runs again
command     the file runs, if the workspace is trusted
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
from lsprotocol import types as lsp

from backprobe.language_server.diagnostics import diagnostics
from backprobe.language_server.documents import Document
from backprobe.language_server.editor import Editor
from backprobe.language_server.hints import Hint, hints, inlay_hints
from backprobe.language_server.positions import Encoding
from backprobe.language_server.runs.cache import Cache
from backprobe.language_server.runs.engine import NotRun, run_locally, wait_for_end
from backprobe.language_server.runs.program import NotAProgram, Program, read_program
from backprobe.language_server.runs.results import Result
from backprobe.language_server.runs.service import Service
from backprobe.language_server.runs.waiting_process import Standby
from backprobe.language_server.settings import Entry, Settings, judging
from backprobe.language_server.workspace import Project, Workspace

UNTRUSTED: Final = "this workspace is not trusted, so nothing in it is run: set `trusted` when you know its code"

_MARKS_OF_A_PROGRAM: Final = ('if __name__ == "__main__"', "if __name__ == '__main__'", ".backward(")


class Session:
    """One editor and its workspace.

    Args:
        editor: Receives the messages. folders: those that are open.
        project: Reads `[tool.backprobe]`. environment: of this process. home: where results are kept.
    """

    def __init__(
        self, editor: Editor, folders: Iterable[Path], project: Project, environment: Mapping[str, str], home: Path
    ) -> None:
        self.settings = Settings()
        self.encoding: Encoding = "utf-16"
        self.workspace = Workspace(folders, project, editor.trouble)
        self._editor, self._environment = editor, environment
        self._cache = Cache(home)
        self._open: dict[str, Document] = {}
        self._closed: dict[str, Document] = {}
        self._results: dict[str, Result] = {}
        self._shown: dict[str, Result] = {}
        self._hints: dict[str, list[Hint]] = {}
        self._inlay: dict[str, list[lsp.InlayHint]] = {}
        self._service: Service | None = None
        self._standby = Standby()
        self._run: asyncio.Task[None] | None = None
        self._looks: set[asyncio.Task[None]] = set()

    def configure(self, settings: Settings) -> None:
        """Take the editor's settings, the first ones or others."""
        if self._service is not None and self._service.url != (settings.url or "").rstrip("/"):
            self._later(self._service.close())
            self._service = None
        before, self.settings = self.settings, settings
        self._hints.clear()
        self._inlay.clear()
        if before.hints != settings.hints:
            self._editor.refresh()
        self._stand()

    def open_document(self, path: str, uri: str, text: str, version: int | None) -> None:
        """Note that a document was opened, and show what is known of it."""
        self._open[path] = Document(uri, text, version, self.encoding)
        self._forget(path)
        if self.result_of(path) is not None:
            self.show(path)
        elif path.endswith(".py"):
            self._later(self._show_stored(path))

    def apply_edits(self, path: str, version: int | None, changes: list[lsp.TextDocumentContentChangeEvent]) -> None:
        """Apply edits to a document."""
        document = self._open.get(path)
        if document is None:
            return
        self.document(path)  # with its result attached, before its lines move
        for change in changes:
            document.change(change)
        document.version = version
        self._inlay.pop(path, None)
        if self.result_of(path) is not None:
            self.show(path)

    def run_saved_document(self, path: str) -> None:
        """Run a saved document if the settings say so; else tell why not."""
        self._closed.clear()
        if not self.settings.trusted:
            self._editor.status("untrusted", UNTRUSTED)
        elif not self.settings.run_on_save:
            self._say_not_run(path, "`runOnSave` is off")
        elif self._entry_of(path) is None:
            self._say_not_run(path, "it matches none of `entries`")
        else:
            self.start(path)

    def close_document(self, path: str) -> None:
        """Note that a document was closed; what is known of its file stays."""
        self._open.pop(path, None)
        self._forget(path)
        if self.result_of(path) is not None:
            self.show(path)

    def run_by_command(self, path: str) -> None:
        """Run this file by command."""
        if self.settings.trusted:
            self.start(path)
        else:
            self._editor.trouble(UNTRUSTED)
            self._editor.status("untrusted", UNTRUSTED)

    def retire_finding(self, path: str, fingerprint: str) -> None:
        """Drop a finding after its fix was applied: its lines are no longer what ran, even if each stayed the same."""
        result = self.result_of(path)
        if result is not None:
            kept = tuple(finding for finding in result.findings if finding.fingerprint != fingerprint)
            self._results[result.entry] = msgspec.structs.replace(result, findings=kept)
            for shown in result.texts:
                self.show(shown)
            self._editor.refresh()

    def offers_run(self, path: str) -> bool:
        """Whether a document may be run from a lens in it: its workspace is trusted, and it is a program."""
        document = self._open.get(path)
        if document is None or not self.settings.trusted:
            return False
        return self._entry_of(path) is not None or any(mark in document.text for mark in _MARKS_OF_A_PROGRAM)

    def result_of(self, path: str) -> Result | None:
        """Return the newest result that has a file; None if none does."""
        return next((result for result in reversed(self._results.values()) if path in result.texts), None)

    def document(self, path: str) -> Document | None:
        """Return the document of a file, open or on disk, with the newest result; None if it cannot be read."""
        document = self._open.get(path) or self._closed.get(path)
        if document is None:
            try:
                text = Path(path).read_bytes().decode()
            except (OSError, UnicodeDecodeError):
                return None
            document = self._closed[path] = Document(Path(path).as_uri(), text, None, self.encoding)
        result = self.result_of(path)
        if self._shown.get(path) is not result or (result is not None and document.ran is None):
            document.attach(None if result is None else result.texts[path])
            if result is None:
                self._shown.pop(path, None)
            else:
                self._shown[path] = result
            self._hints.pop(path, None)
            self._inlay.pop(path, None)
        return document

    def inlay(self, path: str, first: int, last: int) -> list[lsp.InlayHint]:
        """Return the hints of lines from memory; both ends count from 0, inclusive."""
        result, document = self.result_of(path), self._open.get(path)
        if result is None or document is None:
            return []
        self.document(path)
        if path not in self._inlay:
            if path not in self._hints:
                self._hints[path] = hints(result, path, self.settings.hints)
            self._inlay[path] = inlay_hints(document, self._hints[path])
        return [hint for hint in self._inlay[path] if first <= hint.position.line <= last]

    def show(self, path: str) -> None:
        """Publish what is known of a file."""
        document, result = self.document(path), self.result_of(path)
        found = [] if result is None else diagnostics(result, path, self.documents_of(result), self.settings.url)
        if document is not None:
            self._editor.publish(document.uri, document.version, found)

    def documents_of(self, result: Result) -> Callable[[str], Document | None]:
        """Documents by path whose attached text is this result's; those not open as they lie on the disk now."""
        self._closed.clear()
        return lambda path: self.document(path) if self.result_of(path) is result else None

    def start(self, path: str) -> None:
        """Run a file, in place of the run that goes on."""
        self._run = asyncio.get_running_loop().create_task(self._replace_run(path, self._run))

    def cancel(self) -> None:
        """End the run that goes on."""
        if self._run is not None:
            self._run.cancel()

    async def close(self) -> None:
        """End everything that goes on."""
        going_on = [task for task in (self._run, *self._looks) if task is not None and not task.done()]
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)
        await self._standby.end()
        if self._service is not None:
            await self._service.close()
            self._service = None

    async def _replace_run(self, path: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            before.cancel()
            await wait_for_end(before)
        name = Path(path).name
        self._editor.status("running", f"running {name}")
        try:
            program = await asyncio.to_thread(read_program, Path(path), self.workspace.folder_of(path))
            entry = self._entry_of(path)
            if entry is not None:
                program = replace(program, arguments=entry.arguments, environment=entry.environment)
            async with self._editor.progress(f"running {name}"):
                result = await self._result(program)
        except (NotRun, NotAProgram) as error:
            self._editor.trouble(str(error))
            self._editor.status("trouble", str(error))
            return
        except asyncio.CancelledError:
            self._editor.status("idle", f"{name}: canceled")
            raise
        self._show_result(result)
        self._editor.status("idle", f"{name}: {result.summary}")

    async def _result(self, program: Program) -> Result:
        if self.settings.url is not None:
            return await self._remote().run(program, self.settings, judging(self.workspace.project_of(program.root)))
        result = await run_locally(program, self.settings, self._environment, self._standby)
        self._cache.put(program.sha256, result)
        return result

    def _show_result(self, result: Result) -> None:
        """Store a result in place of its entry's older one, and show the files of both again."""
        before = self._results.pop(result.entry, None)
        self._results[result.entry] = result
        self._closed.clear()
        for path in dict.fromkeys((*result.texts, *(() if before is None else before.texts))):
            self.show(path)
        self._editor.refresh()

    async def _show_stored(self, path: str) -> None:
        """Show what an earlier run of this very program found; where there is none, nothing."""
        try:
            program = await asyncio.to_thread(read_program, Path(path), self.workspace.folder_of(path))
            found = self._cache.get(program.sha256)
            if found is not None and found.entry != program.absolute(program.entry):
                found = None  # of an equal program in another folder
            if found is None and self.settings.url is not None:
                found = await self._remote().find_stored_run(program)
        except NotAProgram:
            return
        except NotRun as error:
            self._editor.status("trouble", str(error))
            return
        if found is not None and path in self._open and self.result_of(path) is None:
            self._show_result(found)
            self._editor.status("idle", f"{Path(path).name}, as it was last run: {found.summary}")

    def _remote(self) -> Service:
        if self._service is None:
            self._service = Service(self.settings.url or "", self._environment.get("BACKPROBE_API_KEY") or None)
        return self._service

    def _stand(self) -> None:
        if self.settings.trusted:
            self._editor.status("idle", "ready")
        else:
            self._editor.status("untrusted", UNTRUSTED)

    def _entry_of(self, path: str) -> Entry | None:
        """How a save runs this file; None: it does not."""
        return self.workspace.entry_of(path, self.settings.entries, trusted=self.settings.trusted)

    def _say_not_run(self, path: str, why: str) -> None:
        name = Path(path).name
        self._editor.status("idle", f"{name} was saved and not run: {why}. The command `backprobe.run` runs it")

    def _forget(self, path: str) -> None:
        """Forget what was attached to a document's text, so that it is attached again."""
        self._closed.pop(path, None)
        self._shown.pop(path, None)
        self._hints.pop(path, None)
        self._inlay.pop(path, None)

    def _later(self, what: Any) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)
