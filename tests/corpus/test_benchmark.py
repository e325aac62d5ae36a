"""The benchmark of diagnosis: what counts as found and as an alarm, the bound, and what a typo is answered with."""

import pytest
from msgspec.structs import replace

from bench.diagnosis import __main__ as command
from bench.diagnosis.intervals import upper_bound
from bench.diagnosis.measure import graded, measured, table
from bench.diagnosis.tool_report import ToolReport
from tests.corpus.cases import Case, Corpus, CorrectProgram


def case(**more):
    first = Case(
        id="kept", category="retention", kind="kept-whole", severity="warning", bad="bad", good="good", lines=(3,),
        also=(5,), names=(), kinds=("kept-list",),
    )  # fmt: skip
    return replace(first, **more)


class Scripted:
    """A tool that says of each text what it was told to."""

    name = "scripted"

    def __init__(self, **said):
        self.said, self.closed = said, False

    def report(self, source):
        return self.said.get(source, [])

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (ToolReport(line=3, kind="kept-whole", level="warning"), (True, True)),
        (ToolReport(line=3, kind="kept-list", level="error"), (True, True)),
        (ToolReport(line=3), (True, True)),  # a tool without kinds
        (ToolReport(line=5, kind="kept-whole", level="warning"), (False, True)),
        (ToolReport(line=3, kind="other", level="error"), (False, False)),
        (ToolReport(line=3, kind="kept-whole", level="note"), (False, False)),  # too quiet
        (ToolReport(line=4), (False, False)),
    ],
)
def test_a_line_is_right_where_its_kind_and_loudness_are(told, expected):
    assert graded(case(), [told]) == expected
    assert graded(case(severity="note"), [ToolReport(line=3, kind="kept-whole", level="note")]) == (True, True)


def test_twins_and_correct_programs_count_as_alarmed_once_each():
    said = {
        "bad": [ToolReport(line=3)],
        "good": [ToolReport(line=1), ToolReport(line=2)],
        "quiet": [ToolReport(line=1, level="note")],
    }
    correct = (CorrectProgram(name="a", text="quiet"), CorrectProgram(name="b", text=""))
    corpus = Corpus(name="set", cases=(case(), case(id="silent", bad="nothing", good="")), correct=correct)
    told = []
    found = measured(Scripted(**said), corpus, told.append)
    assert (found.correct, found.alarmed) == (4, ["kept, repaired"])
    assert vars(found.by_family["retention"]) == {"cases": 2, "strict": 1, "lenient": 1, "alarms": 1}
    assert len(told) == 2
    lines = list(table(corpus, [found]))
    assert "| **all** | 2 | 1, 1 |" in lines
    assert "* scripted: 1 of 4 correct programs alarmed, below 75.1% at 95 % confidence: kept, repaired." in lines


def test_the_bound_is_that_of_clopper_and_pearson():
    assert upper_bound(0, 100) == pytest.approx(1 - 0.05**0.01)
    assert upper_bound(1, 4) == pytest.approx(0.7514, abs=1e-4)  # of the beta distribution (2, 3) at 0.95
    assert upper_bound(4, 4) == 1.0
    assert upper_bound(10, 3000) == pytest.approx(0.00564, abs=1e-5)
    for bad in ((-1, 3), (4, 3), (0, 0)):
        with pytest.raises(ValueError, match="is no rate"):
            upper_bound(*bad)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sets", "secnd"], "there is no set 'secnd'"),
        (["--tools", "plain_torh"], "no tool 'plain_torh'"),
        (["--sets", ""], "no set is named"),
        (["--sets", "", "--folder", "nowhere"], "nowhere has no case files"),
    ],
)
def test_a_typo_is_named_with_what_there_is(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_set_and_a_tool_of_ones_own_are_measured(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "first.py").write_text(
        '# /// case\n# category = "family"\n# kind = "k"\n# severity = "warning"\n# names = []\n# ///\n'
        "x = 1\ny = 2  #- here\n"
    )
    (tmp_path / "tools_of_mine").mkdir()
    (tmp_path / "tools_of_mine" / "second_lines.py").write_text(
        "from bench.diagnosis.tool_report import ToolReport\n"
        "class Tool:\n    name = 'second lines'\n"
        "    def report(self, source): return [ToolReport(line=2)] if source.count('\\n') > 1 else []\n"
        "    def close(self): print('closed')\n"
        "def tool(): return Tool()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    asked = ["--sets", "", "--folder", str(tmp_path / "mine"), "--tools", "tools_of_mine.second_lines"]
    assert command.main(asked) == 0
    out = capsys.readouterr().out
    assert "| family | 1 | 1, 1 |" in out
    assert "0 of 1 correct programs alarmed" in out
    assert out.endswith("closed\n")
