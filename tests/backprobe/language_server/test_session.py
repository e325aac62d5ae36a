"""What a session shows and says between two runs, to an editor that writes it down."""

import asyncio
import contextlib

import msgspec
import pytest
from lsprotocol import types as lsp

from backprobe.language_server.editor_session import Session
from backprobe.language_server.runs.cache import Cache
from backprobe.language_server.runs.program import read_program
from backprobe.language_server.settings import Entry, Settings
from tests.backprobe.language_server.samples import NON_LEAF, TEXT, result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.asyncio


class Notes:
    """An editor."""

    def __init__(self):
        self.shown: dict[str, list[str]] = {}
        self.statuses: list[str] = []

    def publish(self, uri, _version, found):
        self.shown[uri] = [diagnostic.code for diagnostic in found]

    def refresh(self):
        pass

    def status(self, state, message):
        self.statuses.append(f"{state}: {message}")

    def trouble(self, message):
        self.statuses.append(f"trouble: {message}")

    def progress(self, _title):
        return contextlib.nullcontext()


@pytest.fixture
def notes():
    return Notes()


def started(notes, tmp_path, *folders, **settings):
    session = Session(notes, folders, lambda _folder: ({}, ""), {}, tmp_path / "home")
    session.configure(Settings(**settings))
    return session


async def open_file(session, path):
    session.open_document(str(path), path.as_uri(), path.read_text(), 1)
    await asyncio.to_thread(wait_until, lambda: session.result_of(str(path)) is not None, "the stored result")


async def test_a_finding_is_retired_when_its_fix_was_applied_though_its_own_line_stays(notes, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TEXT)
    told = msgspec.json.decode(
        msgspec.json.encode(result()).replace(b"/w/train.py", str(path).encode()), type=type(result())
    )
    Cache(tmp_path / "home").put(read_program(path, tmp_path).sha256, told)
    session = started(notes, tmp_path, tmp_path)
    await open_file(session, path)
    assert notes.shown[path.as_uri()] == ["BP101", "BP307"]
    end = lsp.Position(line=6, character=0)
    change = lsp.TextDocumentContentChangePartial(range=lsp.Range(start=end, end=end), text="w.retain_grad()\n")
    session.apply_edits(str(path), 2, [change])
    assert notes.shown[path.as_uri()] == ["BP101", "BP307"]
    session.retire_finding(str(path), NON_LEAF.fingerprint)
    assert notes.shown[path.as_uri()] == ["BP307"]
    session.retire_finding(str(path), NON_LEAF.fingerprint)
    assert notes.shown[path.as_uri()] == ["BP307"]
    await session.close()


async def test_a_save_that_runs_nothing_says_why(notes, tmp_path):
    path = str(tmp_path / "train.py")
    session = started(notes, tmp_path, tmp_path, trusted=True)
    session.run_saved_document(path)
    assert notes.statuses[-1].startswith("idle: train.py was saved and not run: it matches none of `entries`. ")
    session.configure(Settings(trusted=True, run_on_save=False))
    session.run_saved_document(path)
    assert "not run: `runOnSave` is off" in notes.statuses[-1]
    session.configure(Settings())
    session.run_saved_document(path)
    assert notes.statuses[-1].startswith("untrusted: ")


async def test_an_entry_is_looked_up_in_the_innermost_open_folder(notes, tmp_path):
    path = tmp_path / "second" / "deep" / "train.py"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    entries = (Entry(program="deep/train.py"),)
    session = started(notes, tmp_path, tmp_path / "first", tmp_path / "second", trusted=True, entries=entries)
    session.open_document(str(path), path.as_uri(), "x = 1\n", 1)
    assert session.offers_run(str(path))
    session.workspace.change(added=[], removed=[tmp_path / "second"])
    assert not session.offers_run(str(path))
    session.apply_edits(str(path), 2, [lsp.TextDocumentContentChangeWholeDocument(text="loss.backward()\n")])
    assert session.offers_run(str(path)), "it is a program, though none that a save runs"
    await session.close()
