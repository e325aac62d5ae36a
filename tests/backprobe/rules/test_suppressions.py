"""Comments that hide findings: what each covers, and what is said of those that hide nothing."""

from collections import Counter

import pytest

from backprobe.rules import JudgeOptions, judge
from backprobe.rules.framework.suppression_comments import comments
from backprobe.rules.health import findings_left_out
from backprobe.show.formats import terminal_report

FAULT = """import torch

w = torch.ones(3, requires_grad=True).to(torch.float64){comment}
loss = (w * w).sum()
loss.backward()
step = w.grad
"""
NAME = "non-leaf-grad-read"


def judge_suppressed(record, **options) -> list[tuple[str, str, str | None]]:
    found = judge(record, JudgeOptions(**options)).findings
    return [
        (finding.rule.name, finding.level, finding.suppressed.reason if finding.suppressed else "shown")
        for finding in found
    ]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (FAULT.format(comment=f"  # backprobe: ignore[{NAME}] -- only read for logging"), "only read for logging"),
        (FAULT.format(comment=f"  # backprobe: ignore[{NAME}]"), None),
        (FAULT.format(comment=f"  # backprobe: ignore[inplace-on-saved, {NAME}] -- both"), "both"),
        (f"# backprobe: file-ignore[{NAME}] -- a demo\n" + FAULT.format(comment=""), "a demo"),
        (FAULT.format(comment="").replace("w = ", f"# backprobe: ignore[{NAME}] -- above\nw = ", 1), "above"),
        (
            FAULT.format(comment="").replace(".to(", f".to(  # backprobe: ignore[{NAME}] -- inside\n    ", 1),
            "inside",
        ),
    ],
    ids=["behind", "without a reason", "several names", "whole file", "above", "inside the statement"],
)
def test_a_comment_hides_the_finding_and_keeps_its_reason(source, reason, captured) -> None:
    found = judge_suppressed(captured(source))
    assert (NAME, "warning", reason) in found
    assert judge(captured(source)).at_least("warning") == ()


@pytest.mark.parametrize(
    "source",
    [
        FAULT.format(comment="").replace("loss =", f"# backprobe: ignore[{NAME}]\nloss =", 1),
        FAULT.format(comment="") + f'text = "# backprobe: ignore[{NAME}]"\n',
        FAULT.format(comment=f"  # backprobe: ignored[{NAME}]"),
    ],
    ids=["on another statement", "in a string", "another word"],
)
def test_what_covers_something_else_hides_nothing(source, captured) -> None:
    assert (NAME, "warning", "shown") in judge_suppressed(captured(source))


def test_the_head_of_a_block_is_covered_and_its_body_is_not(captured) -> None:
    source = FAULT.format(comment="").replace("w = ", f"if True:  # backprobe: ignore[{NAME}]\n    w = ", 1)
    record = captured(source)
    assert [(comment.first, comment.last) for comment in comments(record)] == [(3, 3)]
    assert (NAME, "warning", "shown") in judge_suppressed(record)


def test_a_comment_that_hides_nothing_is_found_where_the_line_ran_and_the_rule_judged(captured) -> None:
    clean = "import torch\n\nx = torch.ones(3)  # backprobe: ignore[non-leaf-grad-read]\n"
    assert judge_suppressed(captured(clean)) == [("unused-suppression", "note", "shown")]
    assert judge_suppressed(captured(clean), ignore=(NAME,)) == []
    not_reached = "import torch\n\nif torch.ones(1) < 0:\n    x = 1  # backprobe: ignore[non-leaf-grad-read]\n"
    assert judge_suppressed(captured(not_reached)) == []


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# backprobe: ignore[non-leaf-gard-read]", "Did you mean `non-leaf-grad-read`?"),
        ("# backprobe: ignore[BP101]", "is a code; comments name rules"),
        ("# backprobe: ignore[zzzz]", "`backprobe rules` lists the names"),
        ("# backprobe: ignore", "names no rule"),
    ],
)
def test_a_comment_that_names_no_rule_is_a_warning_with_the_nearest_name(comment, said, captured) -> None:
    (finding,) = judge(captured(f"import torch\n\nx = torch.ones(3)  {comment}\n")).findings
    assert (finding.rule.code, finding.level) == ("BP909", "warning")
    assert said in finding.message
    assert finding.location.region.start_line == 3


def test_a_source_that_does_not_tokenize_has_the_comments_before_that_place() -> None:
    from backprobe.record import Environment, Header, Record, Source

    header = Header(
        schema_version=1, backprobe_version="0", tier="full", entry="run", started_at="2026-01-01T00:00:00Z",
        environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    text = "x = 1  # backprobe: ignore[non-leaf-grad-read]\n'''never ends\n# backprobe: ignore[second]\n"
    record = Record(header=header, sources=(Source(source=0, path="t.py", sha256="", text=text),))
    assert [comment.names for comment in comments(record)] == [("non-leaf-grad-read",)]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (FAULT.format(comment="  # backprobe: ignore[no-such-rule]"), "BP909"),
        (FAULT.format(comment="  # backprobe: ignore"), "unknown-suppression"),
        (FAULT.format(comment="  # backprobe: ignore[inplace-on-saved]"), "BP908"),
        (FAULT.format(comment="  # backprobe: ignore[inplace-on-saved]"), "unused-suppression"),
    ],
)
def test_what_is_said_of_comments_may_be_ignored_like_the_rest(source, code, captured) -> None:
    record = captured(source)
    names = {"unknown-suppression", "unused-suppression"}
    assert names & {name for name, _level, _shown in judge_suppressed(record)}
    assert [name for name, _level, _shown in judge_suppressed(record, ignore=(code,))] == [NAME]
    assert [name for name, _level, _shown in judge_suppressed(record, per_file_ignores={"*": (code,)})] == [NAME]


def test_a_comment_of_blanks_is_read_in_one_go() -> None:
    from backprobe.rules.framework.suppression_comments import _COMMENT

    for text in ("# backprobe: ignore{}x", "# backprobe:{}ignore{}-", "#{}", "# backprobe: ignore[{}"):
        assert _COMMENT.match(text.format(" " * 1_000_000, " " * 1_000_000)) is None
    found = _COMMENT.match("#  backprobe:  file-ignore[a, b]  --  why   ")
    assert found is not None
    assert (found["file"], found["names"], found["reason"].strip()) == ("file-", "[a, b]", "why")


def test_a_comment_with_very_many_names_gives_few_findings_and_a_short_report(captured) -> None:
    names = ",".join(f"rule-{number}" for number in range(5_000))
    record = captured(f"x = 1  # backprobe: ignore[{names}, rule-1]\n")
    judgement = judge(record)
    assert len(judgement.findings) == 64 + 1
    assert "more than 64 rules" in " ".join(finding.message for finding in judgement.findings)
    assert len(terminal_report.render(record, judgement)) < 200_000


def test_of_each_rule_the_first_findings_are_told_and_that_there_are_more(captured, monkeypatch) -> None:
    monkeypatch.setattr(findings_left_out, "MOST", 3)
    comments = "".join(f"x = {number}  # backprobe: ignore[rule-{number}]\n" for number in range(6))
    reads = "".join(f"y{number} = w * 2\ny{number}.sum().backward()\ny{number}.grad\n" for number in range(6))
    record = captured(f"import torch\nw = torch.ones(1, requires_grad=True)\n{comments}{reads}")
    found = Counter(finding.rule.code for finding in judge(record, JudgeOptions(ignore=("BP95",))).findings)
    assert found == {"BP101": 3, "BP909": 3, "BP903": 2}
