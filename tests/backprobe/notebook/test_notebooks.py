"""Ten notebooks run plain and with `%%backprobe` on each of their cells: the same outputs, the same errors.

A program is a notebook: `# %%` begins a cell. All run in one kernel, plain first, then captured, with `%reset` between.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("fresh_python"),
]  # one kernel runs all of them, on a machine that may be busy

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
MIME = "application/vnd.backprobe.v1+json"
SECONDS = 600
FIRST = "import warnings\nwarnings.simplefilter('ignore')\nimport torch\n%load_ext backprobe"
LOOSE = re.compile(r"0x[0-9a-f]{6,}|\(\d+\.py, line \d+\)|\[(?:tcp|ipc).*")
"""What differs between two runs of the same cell: addresses, and the line of a syntax error below the magic's own."""

Output = tuple[str, ...]


def cells(path: Path) -> list[str]:
    parts = re.split(r"^# %%\n", path.read_text(), flags=re.MULTILINE)
    return [part.strip("\n") for part in parts if part.strip()]


def captured(source: str) -> str:
    """The cell with our magic, unless it has one of another already."""
    return source if source.startswith("%%") else f"%%backprobe\n{source}"


def join_streams(outputs: list[Any]) -> list[Output]:
    """The outputs of a cell without ours, streams joined."""
    found: list[Output] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            if found and found[-1][:2] == (kind, output["name"]):
                found[-1] = (kind, output["name"], found[-1][2] + output["text"])
            else:
                found.append((kind, output["name"], output["text"]))
        elif kind == "error":
            found.append((kind, output["ename"], LOOSE.sub("?", output["evalue"])))
        elif MIME not in output["data"]:
            found.append(
                (kind, *(f"{mime} {LOOSE.sub('?', str(text))}" for mime, text in sorted(output["data"].items())))
            )
    return found


@pytest.fixture(scope="module")
def runs() -> dict[str, tuple[list[Any], list[Any]]]:
    """The outputs of each notebook's cells: plain, and captured."""
    import nbclient
    import nbformat

    sources, owners = [FIRST], [("", 0)]
    for at in (0, 1):
        for path in PROGRAMS:
            sources += ["%reset -f", *(captured(cell) if at else cell for cell in cells(path))]
            owners += [("", at), *[(path.stem, at) for _ in cells(path)]]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", allow_errors=True).execute()
    found: dict[str, tuple[list[Any], list[Any]]] = {path.stem: ([], []) for path in PROGRAMS}
    for (name, at), cell in zip(owners, notebook.cells, strict=True):
        if name:
            found[name][at].append(cell.outputs)
    return found


def test_there_are_ten_of_them() -> None:
    assert len(PROGRAMS) == 10


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_outputs_and_errors_are_those_of_the_plain_notebook(runs, path) -> None:
    plain, shown = runs[path.stem]
    for source, before, after in zip(cells(path), plain, shown, strict=True):
        assert join_streams(after) == join_streams(before), source
        ours = [row for row in after if MIME in row.get("data", {})]
        does_not_compile = any(row["output_type"] == "error" and row["ename"] == "SyntaxError" for row in before)
        assert len(ours) == (0 if does_not_compile or source.startswith("%%") else 1), source


def test_the_notebooks_say_something_so_that_the_comparison_can_fail(runs) -> None:
    kinds = {output["output_type"] for plain, _ in runs.values() for outputs in plain for output in outputs}
    assert kinds == {"stream", "display_data", "execute_result", "error"}
    errors = [
        output["ename"] for plain, _ in runs.values() for outputs in plain for output in outputs if "ename" in output
    ]
    assert {"RuntimeError", "TypeError", "SyntaxError", "AssertionError", "SystemExit"} <= set(errors)
