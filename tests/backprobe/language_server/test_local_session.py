"""Whole sessions of an editor over standard input and output; programs run here, by `python -m backprobe run`."""

import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest
from lsprotocol import types as lsp

from tests.backprobe.language_server.editors import editor

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("fresh_python")]

SIGMA = "\U0001d70e"
TRAIN = f"""import torch

{SIGMA} = '{SIGMA}{SIGMA}'; w = torch.ones(3, requires_grad=True).to(torch.float64)
v = torch.full((3,), 2.0, requires_grad=True)
loss = (w * v).sum()
loss.backward(retain_graph=True)
print({SIGMA}, w.grad)
"""
ENTRIES = {"trusted": True, "entries": ["train.py"], "seconds": 120}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


async def test_a_session_from_the_first_save_to_the_fix(folder, tmp_path):
    async with editor(folder, tmp_path / "home", ENTRIES) as session:
        session.open("train.py", TRAIN)
        session.save("train.py")
        await session.status("idle: train.py")
        assert session.list_diagnostics("train.py") == [("BP101", 3), ("BP307", 6)]
        found = session.diagnostic("train.py", "BP101")
        line = TRAIN.splitlines()[2]
        assert found.range.start.character == len(line[: line.index("torch.ones")].encode("utf-16-le")) // 2
        assert [row.location.range.start.line for row in found.related_information] == [5, 6]
        assert await session.hints("train.py") == [
            (3, "not leaf, arrived [2, 2, 2]"),
            (4, "leaf"),
            (5, "not leaf, arrived 1"),
            (6, "held 36 B"),
        ]
        assert await session.lenses("train.py") == [(1, "Run with Backprobe"), (6, "2 findings, 36 B held")]
        told = await session.hover("train.py", lsp.Position(line=2, character=30))
        assert "**BP101 non-leaf-grad-read**" in told and "How it came to be:" in told

        # edits: results move, and go with their lines
        session.insert("train.py", 0, 0, "# the first line\n")
        await session.wait_until(
            lambda: session.list_diagnostics("train.py") == [("BP101", 4), ("BP307", 7)], "results moved"
        )
        assert (await session.hints("train.py"))[0][0] == 4
        session.insert("train.py", 3, 0, "q = 0; ")
        await session.wait_until(
            lambda: session.list_diagnostics("train.py") == [("BP307", 7)], "what was said of the edited line is gone"
        )
        assert [line for line, _ in await session.hints("train.py")] == [5, 6, 7]
        assert await session.actions("train.py", found) == []

        # the fix, as the editor applies it
        edited = "# the first line\n " + TRAIN
        retained = session.diagnostic("train.py", "BP307")
        fixes = [action for action in await session.actions("train.py", retained) if getattr(action, "edit", None)]
        assert [(fix.title, fix.is_preferred) for fix in fixes] == [
            ("Let it go", True),
            ("Suppress needless-retain-graph here, with a reason", False),
        ]
        (change,) = fixes[0].edit.document_changes
        assert change.text_document.version == 3
        session.edit("train.py", list(change.edits))
        fixed = TRAIN.replace("retain_graph=True", "").replace(
            ", requires_grad=True).to(torch.float64)", ").to(torch.float64).requires_grad_()"
        )
        whole = lsp.Range(start=lsp.Position(line=0, character=0), end=lsp.Position(line=99, character=0))
        session.edit("train.py", [lsp.TextEdit(range=whole, new_text=fixed)])
        assert edited != fixed
        before = len(session.statuses)
        session.save("train.py", fixed)
        await session.status("idle: train.py", before)
        assert session.list_diagnostics("train.py") == []
        assert (await session.hints("train.py"))[0] == (3, "leaf")

        # the manual
        text = await session.command("backprobe.explain", "BP101")
        assert "non-leaf-grad-read" in text
        assert session.client.shown_documents[-1].uri.endswith("/non-leaf-grad-read.txt")
        assert session.messages == []

    methods = [method for way, method in session.traffic if way == "->" or method != "window/logMessage"]
    kept = {
        "initialize", "textDocument/didOpen", "textDocument/didSave", "window/workDoneProgress/create",
        "textDocument/publishDiagnostics", "workspace/inlayHint/refresh", "workspace/codeLens/refresh",
        "textDocument/inlayHint", "textDocument/hover", "textDocument/codeAction", "shutdown", "exit",
    }  # fmt: skip
    first = [method for n, method in enumerate(methods) if method in kept and method not in methods[:n]]
    assert first == [
        "initialize",
        "textDocument/didOpen",
        "textDocument/didSave",
        "window/workDoneProgress/create",
        "textDocument/publishDiagnostics",
        "workspace/inlayHint/refresh",
        "workspace/codeLens/refresh",
        "textDocument/inlayHint",
        "textDocument/hover",
        "textDocument/codeAction",
        "shutdown",
        "exit",
    ]

    # another editor, another day: what was found of this text is shown on opening it, and nothing runs
    async with editor(folder, tmp_path / "home", {"trusted": False}) as again:
        again.open("train.py", TRAIN)
        await again.status("idle: train.py, as it was last run")
        assert again.list_diagnostics("train.py") == [("BP101", 3), ("BP307", 6)]
        again.save("train.py")
        again.save("train.py")
        await again.command("backprobe.run", again.uri("train.py"))
        await again.command("backprobe.run", again.uri("train.py"))
        assert len([text for text in again.messages if "not trusted" in text]) == 1
        assert not [text for text in again.statuses if text.startswith("running")]


WAITS = """import os, sys, time
from pathlib import Path
import other
here = Path(sys.argv[0]).absolute().parent
(here / f"pid-{os.getpid()}").touch()
while not (here / "go").exists():
    time.sleep(0.01)
w = other.make()
(w * 2).sum().backward()
print(w.grad)
x = w.detach()
"""
OTHER = "import torch\n\n\ndef make():\n    return torch.ones(3, requires_grad=True).double()\n"


def pids(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


def has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_two_files_that_are_edited_while_a_run_goes_on_show_it_where_it_belongs(folder, tmp_path):
    long = WAITS + "".join(f"a{n} = {n}\n" for n in range(2000))
    async with editor(folder, tmp_path / "home", ENTRIES) as session:
        session.open("other.py", OTHER)
        session.open("train.py", long)
        session.save("train.py")
        await session.wait_until(lambda: pids(folder), "the program runs")
        session.insert("train.py", 0, 0, "# one\r\n# two\r\n")
        session.insert("train.py", 13, 0, " ")  # the tenth line of what runs
        session.insert("other.py", 4, 4, "pass\n    ")
        (folder / "go").touch()
        await session.status("idle: train.py")
        assert session.list_diagnostics("train.py") == []
        assert (
            session.list_diagnostics("other.py") == [("BP101", 6)]
            or [code for code, _ in session.list_diagnostics("other.py")] == []
        )
        shown = await session.hints("train.py", 20)
        assert shown == [(13, "grad None: cut at 13")], shown


async def test_a_newer_save_ends_the_older_run_and_cancel_ends_the_newer(folder, tmp_path):
    async with editor(folder, tmp_path / "home", ENTRIES) as session:
        (folder / "other.py").write_text(OTHER)
        session.open("train.py", WAITS)
        session.save("train.py")
        (first,) = await session.wait_until(lambda: pids(folder), "the first runs")
        session.save("train.py", WAITS + "# newer\n")
        await session.wait_until(lambda: len(pids(folder)) == 2, "the second runs")
        assert has_ended(first)
        (second,) = set(pids(folder)) - {first}
        session.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token=session.tokens[-1]))
        await session.wait_until(lambda: "idle: train.py: canceled" in session.statuses[-1:], "it is canceled")
        await session.wait_until(lambda: has_ended(second), "the second has gone")
        assert session.messages == []
        assert session.list_diagnostics("train.py") == []


async def test_a_newer_save_lets_the_older_program_clean_up(folder, tmp_path):
    careful = WAITS.replace("while not", "try:\n  while not").replace(
        "    time.sleep(0.01)\n",
        "    time.sleep(0.01)\nexcept KeyboardInterrupt:\n  (here / 'cleaned').touch()\n  raise\n",
    )
    given = [{"program": "train.py", "args": ["--careful"], "env": {"MORE": "1"}}]
    checks = "import os, sys\nassert sys.argv[1:] == ['--careful'], sys.argv\nassert os.environ['MORE'] == '1'\n"
    async with editor(folder, tmp_path / "home", ENTRIES | {"entries": given}) as session:
        (folder / "other.py").write_text(OTHER)
        session.open("train.py", checks + "assert os.environ['BACKPROBE_RUN'] == '1'\n" + careful)
        session.save("train.py")
        await session.wait_until(lambda: pids(folder), "the first runs")
        session.save("train.py")
        await session.wait_until(lambda: len(pids(folder)) == 2, "the second runs")
        assert (folder / "cleaned").exists()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
async def test_a_server_that_is_killed_leaves_no_program(folder, tmp_path, sent):
    with contextlib.suppress(Exception):  # the editor's end of the session is not a good one
        async with editor(folder, tmp_path / "home", ENTRIES) as session:
            (folder / "other.py").write_text(OTHER)
            session.open("train.py", WAITS)
            session.save("train.py")
            (pid,) = await session.wait_until(lambda: pids(folder), "it runs")
            session.client._server.send_signal(sent)
            await session.wait_until(lambda: has_ended(pid), "the program has gone")
    assert has_ended(pid)


async def test_an_editor_that_goes_takes_the_run_with_it(folder, tmp_path):
    async with editor(folder, tmp_path / "home", ENTRIES) as session:
        (folder / "other.py").write_text(OTHER)
        session.open("train.py", WAITS)
        session.save("train.py")
        (pid,) = await session.wait_until(lambda: pids(folder), "it runs")
    assert has_ended(pid)


async def test_a_program_that_raises_is_told_on_its_line_and_sees_no_key(folder, tmp_path):
    hidden = "import os\nassert 'BACKPROBE_API_KEY' not in os.environ\n"
    environment = {"BACKPROBE_API_KEY": "not-for-programs"}
    async with editor(folder, tmp_path / "home", ENTRIES, environment) as session:
        session.open("train.py", hidden)
        session.save("train.py")
        await session.status("idle: train.py: ")
        assert session.list_diagnostics("train.py") == []
        before = len(session.statuses)
        session.save("train.py", "import os\n\nos.nothing()\n")
        await session.status("idle: train.py", before)
        assert (
            session.list_diagnostics("train.py") == []
        )  # the editor's text is another one: the line that raised is not in it
        session.open("train.py")
        await session.wait_until(
            lambda: session.list_diagnostics("train.py") == [("program-failed", 3)], "the line that raised"
        )
        before = len(session.statuses)
        session.save("train.py", "x = (\n")
        session.open("train.py")
        await session.status("idle: train.py", before)
        assert session.list_diagnostics("train.py") == [("program-failed", 1)]
        assert "SyntaxError" in session.diagnostic("train.py", "program-failed").message
        assert session.messages == []


async def test_what_cannot_be_started_is_said_once_and_not_again(folder, tmp_path):
    settings = ENTRIES | {"interpreter": str(tmp_path / "nowhere"), "entres": [1]}
    async with editor(folder, tmp_path / "home", settings) as session:
        session.open("train.py", TRAIN)
        for n in range(4):
            session.save("train.py")
            await session.wait_until(
                lambda n=n: len([s for s in session.statuses if s.startswith("trouble")]) > n, "trouble"
            )
        assert [text for text in session.messages if "cannot be started" in text] == [
            f"Backprobe: `{tmp_path / 'nowhere'}` cannot be started (No such file or directory): set `interpreter`"
        ]
        assert [text for text in session.messages if "entres" in text] == [
            "Backprobe: settings: `entres` is no setting; did you mean `entries`?"
        ]


async def test_nothing_runs_on_open_or_edit_or_the_save_of_what_is_no_entry(folder, tmp_path):
    async with editor(folder, tmp_path / "home", {"trusted": True, "entries": ["jobs/*.py"]}) as session:
        session.open("train.py", TRAIN)
        session.insert("train.py", 0, 0, "x")
        session.save("train.py")
        item = lsp.TextDocumentItem(
            uri="vscode-notebook-cell:/w/a.ipynb#1", language_id="python", version=1, text=TRAIN
        )
        session.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
        cell = lsp.TextDocumentIdentifier(uri=item.uri)
        session.client.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=cell))
        await session.command("backprobe.run", item.uri)
        assert await session.wait_until(lambda: session.messages, "it is said") == [
            "Backprobe: only files are run from here; in a notebook, `%%backprobe` runs a cell"
        ]
        assert await session.hints("train.py") == []
        assert [text for text in session.statuses if text.startswith("running")] == []
        assert session.statuses[-1].startswith("idle: train.py was saved and not run: it matches none of `entries`.")
        assert os.listdir(folder) == ["train.py"]
