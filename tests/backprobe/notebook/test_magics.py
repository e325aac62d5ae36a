"""`%%backprobe` in a real IPython kernel: the cell runs in the notebook, its findings stand below it, errors are raised."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import pytest

import backprobe

pytestmark = pytest.mark.usefixtures("fresh_python")

WAIT = 120


class Kernel:
    """A kernel and what its cells said."""

    def __init__(self) -> None:
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3")

    def run(self, cell: str) -> dict[str, Any]:
        """The streams, displayed data, results and the error of one cell."""
        said: dict[str, Any] = {"stdout": "", "stderr": "", "display": [], "result": None, "error": None}

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                said[content["name"]] += content["text"]
            elif message["msg_type"] == "display_data":
                said["display"].append(content["data"])
            elif message["msg_type"] == "execute_result":
                said["result"] = content["data"]["text/plain"]
            elif message["msg_type"] == "error":
                said["error"] = content

        self.client.execute_interactive(cell, output_hook=hear, timeout=WAIT)
        return said


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    kernel.run("import warnings; warnings.simplefilter('ignore')\nimport torch\nw = torch.ones(2, requires_grad=True)")
    assert kernel.run("%load_ext backprobe")["error"] is None
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


def test_a_cell_is_captured_in_the_notebooks_namespace_and_shows_its_value_and_its_findings(kernel: Kernel) -> None:
    number = int(kernel.run("get_ipython().execution_count")["result"])  # of the cell that comes next
    said = kernel.run("%%backprobe -o seen\nv = w.to(torch.float64)\nv.sum().backward()\nprint(v.grad)\nv * 2")
    assert said["error"] is None
    assert said["stdout"] == "None\n"
    assert said["result"].startswith("tensor([2., 2.]")
    shown = said["display"][0]
    assert "BP101" in shown["text/plain"]
    assert "line 2" in shown["text/html"]
    assert "<script" not in shown["text/html"]
    assert "<style" not in shown["text/html"]
    start = shown["text/plain"].index("-->")
    story = shown["text/plain"][start : shown["text/plain"].index("more: backprobe explain BP101")]
    for line in (*story.splitlines(), "more: backprobe explain BP101"):
        assert escape(line.strip()) in shown["text/html"], "the HTML tells what the text tells"
    assert "application/vnd.backprobe.v1+json" in shown
    assert kernel.run("v.shape, seen.findings[0].location.region.start_line")["result"] == "(torch.Size([2]), 2)"
    assert kernel.run("seen.findings[0].location.path")["result"] == f"'Cell [{number}]'"


def test_the_html_of_a_cell_without_findings_says_what_was_checked(kernel: Kernel) -> None:
    shown = kernel.run("%%backprobe\n(w * 2).sum().backward()")["display"][0]
    line = shown["text/plain"].splitlines()[1]
    assert line.startswith("checked: dependence held in ")
    assert f"<p>{escape(line)}</p>" in shown["text/html"]


def test_what_a_cell_raises_is_raised_after_its_findings_with_the_cells_own_line(kernel: Kernel) -> None:
    said = kernel.run("%%backprobe\nx = torch.ones(2)\nx @ torch.ones(3)")
    assert said["display"]
    assert said["error"]["ename"] == "RuntimeError"
    trace = "\n".join(said["error"]["traceback"])
    assert "line 3" in trace
    assert "notebook.py" not in trace
    assert "program/notebook_cell.py" not in trace


def test_a_function_of_an_earlier_captured_cell_keeps_its_own_lines(kernel: Kernel) -> None:
    kernel.run("%%backprobe\ndef double(t):\n    inner = t * 2\n    return inner")
    kernel.run("%%backprobe -o later\nout = double(w)\nout.sum().backward()")
    lines = "[(b.name, later.record.sites[b.site].line) for b in later.record.bindings if b.name in ('inner', 'out')]"
    assert kernel.run(lines)["result"] == "[('inner', 3), ('out', 2)]"
    assert kernel.run("later.record.end.own_errors")["result"] == "0"


def test_after_a_cell_torch_is_as_it_was_and_the_result_keeps_no_tensor(kernel: Kernel) -> None:
    kernel.run("before = torch.autograd.graph._engine_run_backward.__code__")
    kernel.run("%%backprobe -o kept\nlost = torch.ones(3, requires_grad=True) * 2")
    kernel.run("import weakref; there = weakref.ref(lost); del lost")
    assert (
        kernel.run("there() is None, before is torch.autograd.graph._engine_run_backward.__code__")["result"]
        == "(True, True)"
    )


def test_a_cell_that_does_not_compile_raises_and_the_next_one_runs(kernel: Kernel) -> None:
    assert kernel.run("%%backprobe\ndef f(:")["error"]["ename"] == "SyntaxError"
    assert kernel.run("%%backprobe\n1")["error"] is None


def test_it_says_what_it_is_without_ipython_loaded() -> None:
    assert callable(backprobe.load_ipython_extension)


def test_a_cell_that_awaits_is_captured_in_its_own_lines_and_raises_once(kernel: Kernel) -> None:
    said = kernel.run(
        "%%backprobe -o seen\nimport asyncio\nawait asyncio.sleep(0)\nv = w.double()\nv.sum().backward()\nv.grad\nv"
    )
    assert said["error"] is None
    assert said["result"].startswith("tensor([1., 1.]")
    assert kernel.run("seen.findings[0].location.region.start_line")["result"] == "4"
    said = kernel.run("%%backprobe\nawait asyncio.sleep(0)\n1 / 0")
    assert (len(said["display"]), said["error"]["ename"]) == (1, "ZeroDivisionError")
    trace = "\n".join(said["error"]["traceback"])
    assert "line 3" in trace
    assert "magics.py" not in trace


def test_one_statement_is_captured_at_its_line_and_column_of_the_cell(kernel: Kernel) -> None:
    cell = "before = 1\nif before:\n    %backprobe u = w.double(); u.sum().backward(); u.grad\nafter = u.shape"
    said = kernel.run(cell)
    assert said["error"] is None
    assert "BP101" in said["display"][0]["text/plain"]
    assert "4 |" not in said["display"][0]["text/plain"]
    place = "(lambda r: (r.start_line, r.start_col))(get_ipython().run_line_magic('backprobe', 'last').findings[0].location.region)"
    assert kernel.run(place)["result"] == f"(3, {len('    %backprobe u')})"
    assert kernel.run("after")["result"] == "torch.Size([2])"


def test_the_last_result_is_shown_again_and_one_line_says_what_it_is(kernel: Kernel) -> None:
    kernel.run("%%backprobe -o seen\n(w * 2).sum().backward()")
    assert kernel.run("get_ipython().run_line_magic('backprobe', 'last') is seen")["result"] == "True"
    assert kernel.run("print(repr(seen))")["stdout"].startswith("<backprobe: ")
    assert kernel.run("print(repr(seen).count(chr(10)))")["stdout"] == "0\n"


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%backprobe", "%backprobe STATEMENT runs one statement"),
        ("%%backprobe --tier most\n1", "invalid choice: 'most'"),
        (
            "get_ipython().run_cell_magic('backprobe', '', 'import asyncio\\nawait asyncio.sleep(0)')",
            "`await` outside of functions",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(kernel: Kernel, cell: str, said: str) -> None:
    assert said in kernel.run(cell)["stderr"]


def test_the_html_has_at_most_50_rows_and_every_name_is_escaped(kernel: Kernel) -> None:
    kernel.run(
        "import html.parser\nnames = {}\nfor at in range(80): names[f'<script>{at}'] = torch.ones(1, requires_grad=True)"
    )
    lines = "\n".join(f"t{at} = torch.ones(1, requires_grad=True) * 2" for at in range(80))
    said = kernel.run(f"%%backprobe\n{lines}\nfor key in names: names[key].sum().backward()")
    html = said["display"][0]["text/html"]
    assert html.count("<tr>") <= 50 + 2
    assert "more rows" in html
    assert "<script" not in html
    assert "<style" not in html


def test_a_service_that_is_away_costs_a_line_and_no_error(kernel: Kernel) -> None:
    kernel.run(
        "import os\nos.environ['BACKPROBE_URL'] = 'http://127.0.0.1:1'\nfrom backprobe.client import requests as client_requests\nclient_requests.FIRST_PAUSE_SECONDS = 0.0"
    )
    said = kernel.run("%%backprobe --submit\nw * 2")
    assert said["error"] is None
    assert "not sent: the service at http://127.0.0.1:1" in said["display"][0]["text/plain"]
