"""What leaves of a program's text."""

from __future__ import annotations

import hashlib

import pytest

from backprobe.record import End, Site, Source, batch_frames, end_frame, frame_rows
from backprobe.recorder.sources import SourceCut

TEXT = "import torch\nsecret = 'x'\nloss = (a +\n  b)\nloss.backward()\n"
SHA = hashlib.sha256(TEXT.encode()).hexdigest()


def frame(*rows):
    (batched,) = batch_frames("sources" if isinstance(rows[0], Source) else "sites", list(rows))
    return batched


def site(number, line, end_line):
    return Site(site=number, source=0, line=line, col=1, end_line=end_line, end_col=9, kind="statement")


SOURCE = frame(Source(source=0, path="train.py", sha256=SHA, text=TEXT))


def texts(frames):
    """The texts of the source rows among frames, in order."""
    found = [frame_rows(data) for data in frames]
    return [row.text for kind, rows in found if kind == "sources" for row in rows]


def test_lines_that_sites_name_leave_and_others_do_not():
    cut = SourceCut("lines")
    assert texts(cut.cut_sources([SOURCE])) == [""]
    after = list(cut.cut_sources([frame(site(0, 3, 4))]))
    assert texts(after) == ["…\n…\nloss = (a +\n  b)\n…\n…"]
    assert [frame_rows(data)[0] for data in after] == ["sites", "sources"]
    assert texts(cut.cut_sources([frame(site(1, 4, 4))])) == [], "nothing new is named"
    assert texts(cut.cut_sources([frame(site(2, 5, 5))])) == ["…\n…\nloss = (a +\n  b)\nloss.backward()\n…"]
    ((row,),) = [rows for kind, rows in map(frame_rows, cut.cut_sources([SOURCE])) if kind == "sources"]
    assert row.sha256 == SHA


def test_what_is_left_out_is_no_python_so_that_no_rule_takes_the_rest_for_the_program():
    cut = SourceCut("lines")
    list(cut.cut_sources([SOURCE]))
    (text,) = texts(cut.cut_sources([frame(site(0, 5, 5))]))
    with pytest.raises(SyntaxError):
        compile(text, "train.py", "exec")


def test_nothing_follows_the_end():
    cut = SourceCut("lines")
    list(cut.cut_sources([SOURCE]))
    end = end_frame(End(ending="ended", exit_code=0))
    assert [frame_rows(data)[0] for data in cut.cut_sources([frame(site(0, 3, 4)), end])] == ["sites", "sources", "end"]


def test_none_sends_no_text_and_full_all_of_it():
    assert texts(SourceCut("none").cut_sources([SOURCE, frame(site(0, 1, 5))])) == [""]
    frames = [SOURCE, frame(site(0, 1, 1))]
    assert list(SourceCut("full").cut_sources(frames)) == frames


PROGRAM = """\
import torch
token = "x"


class Net(torch.nn.Module):
    width = 4

    def forward(self, x):
        return self.body(x)

    @property
    def path(self):
        '''Where it lies.'''
        return "/secret"


def unused(path): return path


def train(net):
    # each row once
    loss = net(torch.ones(4))
    loss.backward()


train(Net())
"""


def send_cut(named: int) -> str:
    cut = SourceCut("functions")
    list(cut.cut_sources([frame(Source(source=0, path="train.py", sha256="", text=PROGRAM))]))
    return texts(cut.cut_sources([frame(site(0, named, named))]))[0]


def test_the_functions_that_sites_name_leave_whole_and_of_the_others_their_first_lines():
    lines = send_cut(22).split("\n")
    assert lines[19:23] == PROGRAM.split("\n")[19:23], "comments too: a rule and a reader see what ran"
    assert lines[:2] == ["import torch", "# …"]
    assert lines[4:8] == ["class Net(torch.nn.Module):", "    width = 4", "", "    def forward(self, x):"]
    assert lines[8] == "        ...  # …"
    assert "secret" not in "\n".join(lines)
    assert lines[25] == "# …", "nothing outside functions is named"
    compile("\n".join(lines), "train.py", "exec")


def test_code_outside_functions_leaves_if_a_line_of_it_is_named():
    lines = send_cut(26).split("\n")
    assert lines[1] == 'token = "x"'
    assert lines[25] == "train(Net())"
    assert "loss" not in "\n".join(lines)


def test_lines_alone_leave_of_a_text_that_is_no_python():
    cut = SourceCut("functions")
    list(cut.cut_sources([frame(Source(source=0, path="train.py", sha256="", text="def f(:\n    x.backward()\n"))]))
    assert texts(cut.cut_sources([frame(site(0, 2, 2))])) == ["…\n    x.backward()\n…"]
