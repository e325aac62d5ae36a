"""What people read in the terminal."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from backprobe.record import End, Record, Statistics, Truncation, check
from backprobe.rules import Check, Location, NotRun, Region, judge
from backprobe.show.formats import concise, terminal_report
from backprobe.show.tensor_table import tensor_rows
from tests.backprobe.show.records import TEXT, finding, judgement, two_leaves

GOLD = Path(__file__).parent / "gold"


def test_the_hand_built_record_is_whole() -> None:
    check(two_leaves())


def test_a_report_reads_as_its_gold_file() -> None:
    """To renew it: write `terminal_report.render(two_leaves(), judgement(finding()))` and a newline to gold/report.txt, and read it."""
    assert terminal_report.render(two_leaves(), judgement(finding())) + "\n" == (GOLD / "report.txt").read_text()


def test_colour_only_adds_escape_sequences() -> None:
    plain = terminal_report.render(two_leaves(), judgement(finding()))
    coloured = terminal_report.render(two_leaves(), judgement(finding()), color=True)
    assert "\x1b" not in plain
    assert coloured != plain
    import re

    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


def test_the_first_line_says_what_was_judged() -> None:
    judged = judge(two_leaves())
    first = f"{judged.rules_judged} rules, 3 tensors, 1 backward call, 0 findings\n"
    assert terminal_report.render(two_leaves(), judged).startswith(first)


def test_findings_stand_before_what_was_seen() -> None:
    heads = [block.split("\n")[0] for block in terminal_report.render(two_leaves(), judgement(finding())).split("\n\n")]
    assert [head.split("[")[0] for head in heads] == [
        "5 rules, 3 tensors, 1 backward call, 1 finding", "warning", "tensors", "backward calls",
    ]  # fmt: skip


def many(count: int) -> Record:
    """`count` named tensors, and as many backward calls of three statements in turn."""
    record = two_leaves()
    tensors = [msgspec.structs.replace(record.tensors[0], tensor=n, fqn=f"net.{n}.weight") for n in range(3, count)]
    states = [msgspec.structs.replace(record.snapshots[0], tensor=n) for n in range(3, count)]
    (call,) = record.backward_calls
    calls = tuple(msgspec.structs.replace(call, call=n, site=record.sites[n % 3].site) for n in range(count))
    tables = {"tensors": (*record.tensors, *tensors), "snapshots": (*record.snapshots, *states)}
    return msgspec.structs.replace(record, **tables, backward_calls=calls)


def test_a_long_table_is_named_and_shown_on_request() -> None:
    shown = terminal_report.render(many(40), judgement())
    assert "net.20.weight" not in shown
    assert shown.endswith("tensors: 80 lines; `--tables` shows them")
    assert len(shown.split("\n")) < 20
    assert "net.20.weight" in terminal_report.render(many(40), judgement(), tables=True)
    assert terminal_report.render(many(8), judgement(), tables=True) == terminal_report.render(many(8), judgement())
    assert "tensors: 16 lines, backward calls: 6 lines; `--tables`" in terminal_report.render(
        many(8), judgement(), tables=False
    )


def test_backward_calls_that_alternate_are_folded() -> None:
    shown = terminal_report.render(many(12), judgement(), tables=True).split("backward calls\n")[1].split("\n")
    assert [line.split("  ")[1] for line in shown[::2]] == ["1, 4 ... 10", "2, 5 ... 11", "3, 6 ... 12"]
    assert all("each ran 3 of 3 nodes" in line for line in shown[1::2])


def test_a_root_without_a_name_is_not_called_anything() -> None:
    (call,) = two_leaves().backward_calls
    roots = [msgspec.structs.replace(call.roots[0], name=name) for name in (None, "loss")]
    for given, told in (
        ((roots[0],), "Tensor.backward  retain"),
        (tuple(roots), "from `loss` and 1 value without a name  "),
    ):
        shown = terminal_report.render(
            two_leaves(backward_calls=(msgspec.structs.replace(call, roots=given),)), judgement()
        )
        assert told in shown
        assert "unnamed" not in shown


def test_long_names_are_cut_so_that_no_two_look_alike() -> None:
    record = two_leaves()
    ways = [f"transformer.encoder.layers.{n}.attention.projection.weight" for n in (0, 1)]
    tensors = [msgspec.structs.replace(row, fqn=way) for row, way in zip(record.tensors, ways, strict=False)]
    shown = terminal_report.render(msgspec.structs.replace(record, tensors=(*tensors, record.tensors[2])), judgement())
    assert all(way in shown for way in ways)
    apart = [ways[0], "transformer.decoder.layers.9.attention.projection.bias"]
    tensors = [msgspec.structs.replace(row, fqn=way) for row, way in zip(record.tensors, apart, strict=False)]
    shown = terminal_report.render(msgspec.structs.replace(record, tensors=(*tensors, record.tensors[2])), judgement())
    assert "transformer.e\u2026ttention.projection.weight" in shown
    assert "transformer.d\u2026.attention.projection.bias" in shown
    assert not any(way in shown for way in apart)


def test_what_is_thinned_out_by_plan_reads_as_a_sample() -> None:
    thinned = (Truncation(n=0, what="module calls", why="recorded at 1-2-5 per decade"),)
    shown = terminal_report.render(two_leaves(truncations=thinned), judgement())
    assert shown.split("\n")[:2] == [
        "5 rules, 3 tensors, 1 backward call, 0 findings",
        "sampled: modules that were called very often are known by some of their calls: 1, 2, 5, 10, 20, 50 ...",
    ]


def test_child_processes_are_told_in_the_summary_and_by_themselves() -> None:
    cut = (Truncation(n=0, what="child processes", why="what they did is not in the record", seen=2),)
    shown = terminal_report.render(two_leaves(truncations=cut), judgement())
    assert shown.split("\n")[:2] == [
        "5 rules, 3 tensors, 1 backward call, 0 findings, 2 child processes not looked at",
        "not looked at: 2 child processes of the program: what they did is not in the record",
    ]


def test_followed_children_are_told_in_the_summary_and_a_child_by_a_line() -> None:
    cut = (
        Truncation(n=0, what="followed child processes", why="what each of them did is in its own record", seen=2),
        Truncation(n=1, what="before this process", why="that is in its parent's record", seen=1),
    )
    shown = terminal_report.render(two_leaves(truncations=cut), judgement())
    assert shown.split("\n")[:2] == [
        "5 rules, 3 tensors, 1 backward call, 0 findings, 2 child processes in records of their own",
        "a child process: that is in its parent's record",
    ]


def test_the_exit_code_of_the_program_is_said() -> None:
    shown = terminal_report.render(two_leaves(end=End(ending="exited", exit_code=3)), judgement())
    assert shown.split("\n")[0].endswith("0 findings, the program's exit code is 3")


def test_a_rule_that_was_not_run_is_named_and_not_counted_as_judged() -> None:
    missing = NotRun(code="BP401", name="inplace-on-saved", why="needs `saved`")
    shown = terminal_report.render(two_leaves(), judgement(not_run=(missing,)))
    assert "not run: BP401 inplace-on-saved needs `saved`" in shown
    assert "4 of 5 rules" in shown


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"end": None}, "the record stops before the program's end"),
        ({"truncations": (Truncation(n=0, what="tensors", why="too many", limit=7),)}, "tensors: too many (limit 7)"),
        ({"end": End(ending="ended", exit_code=0, own_errors=1, own_error="boom")}, "1 error of Backprobe's own: boom"),
    ],
)
def test_what_is_missing_from_a_record_is_said(change, said) -> None:
    shown = terminal_report.render(two_leaves(**change), judgement())
    assert f"incomplete: {said}" in shown


def test_an_incomplete_record_never_reads_as_all_good() -> None:
    shown = terminal_report.render(two_leaves(end=None), judgement())
    assert shown.split("\n")[0] == "5 rules, 3 tensors, 1 backward call, 0 findings, record incomplete"


def test_a_stranger_cannot_drive_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\u202e\x9b2J"
    source = TEXT.replace("w = torch", f"w = '{evil}' or torch")
    record = two_leaves(names=(evil, "x", "loss"), text=source)
    place = Location(path=f"tr{evil}ain.py", region=Region(start_line=2, start_col=1, end_line=2, end_col=9), text=evil)
    shown = terminal_report.render(record, judgement(finding(message=evil, location=place, fixes=(), related=())))
    shown += concise.render(record, judgement(finding(message=evil, location=place)))
    assert not any(character in shown for character in "\x1b\x07\u202e\x9b")
    assert "\\x1b]0;owned\\x07\\u202e\\x9b2J" in shown


def test_carets_stand_under_wide_characters() -> None:
    line = "\u5f20\u91cf = torch.ones(2, requires_grad=True)"
    record = two_leaves(text=TEXT.replace("w = torch.ones(2, requires_grad=True)", line))
    place = Location(path="train.py", region=Region(start_line=2, start_col=6, end_line=2, end_col=11), text=line)
    shown = terminal_report.render(record, judgement(finding(location=place, fixes=(), related=()))).split("\n")
    at = next(number for number, row in enumerate(shown) if row.endswith(line))
    # two wide characters take four columns, then " = ": "torch" begins at column 7 of the line
    assert shown[at + 1] == "  | " + " " * 7 + "^" * 5


def test_a_region_of_several_lines_is_underlined_on_each() -> None:
    place = Location(
        path="train.py", region=Region(start_line=3, start_col=5, end_line=4, end_col=7), text="x = torch.ones(2)"
    )
    shown = terminal_report.render(two_leaves(), judgement(finding(location=place, fixes=(), related=()))).split("\n")
    at = next(number for number, row in enumerate(shown) if row == "3 | x = torch.ones(2)")
    assert shown[at + 1 : at + 4] == ["  |     ^^^^^^^^^^^^^", "4 | loss = (w * x).sum()", "  | ^^^^^^"]


def test_suppressed_findings_are_hidden_and_counted() -> None:
    from backprobe.rules.framework.finding import Suppression

    hidden = finding(suppressed=Suppression(kind="inSource", reason="known"))
    shown = terminal_report.render(two_leaves(), judgement(hidden))
    assert "BP101" not in shown
    assert shown.split("\n")[0].endswith("0 findings (1 suppressed)")


def test_concise_is_one_line_per_finding() -> None:
    lines = concise.render(two_leaves(), judgement(finding())).split("\n")
    assert lines == [
        "train.py:2:5: non-leaf-grad-read BP101 warning: first line",
        "5 rules, 3 tensors, 1 backward call, 1 finding",
    ]


@pytest.mark.parametrize("form", [terminal_report, concise])
def test_no_findings_is_never_said_without_what_was_not_checked(form: ModuleType) -> None:
    unknown = Check(
        name="mode", code="BP956", state="unknown", checked=0, total=0, unit="modules", why="no module acts by its mode"
    )
    shown = form.render(two_leaves(), replace(judgement(), checks=(unknown,)))
    assert "not checked: mode (no module acts by its mode)" in shown


def test_equal_names_of_a_loop_stand_together() -> None:
    record = two_leaves()
    rows = [msgspec.structs.replace(record.bindings[0], binding=3, tensor=3)]
    again = msgspec.structs.replace(record.tensors[0], tensor=3)
    state = msgspec.structs.replace(record.snapshots[0], tensor=3)
    more: Record = msgspec.structs.replace(
        record,
        bindings=(*record.bindings, *rows),
        tensors=(*record.tensors, again),
        snapshots=(*record.snapshots, state),
    )
    shown = terminal_report.render(more, judgement())
    assert "w \u00d72" in shown
    assert "4 tensors" in shown


def test_a_call_that_was_not_walked_says_nothing_of_nodes() -> None:
    (call,) = two_leaves().backward_calls
    calls = (
        call,
        *(msgspec.structs.replace(call, call=n, nodes_met=0, nodes_run=n, nodes_freed=n, held_bytes=0) for n in (1, 2)),
    )
    shown = terminal_report.render(two_leaves(backward_calls=calls), judgement())
    assert "ran 3 of 3 nodes" in shown
    assert "  2-3  line 5" in shown
    assert "the graph was not walked: nothing is said of its nodes" in shown
    assert "of 0 nodes" not in shown


def test_a_measured_gradient_is_shown_while_it_is_the_same_one() -> None:
    record = two_leaves(small_values=())
    measured = msgspec.structs.replace(record.snapshots[1], grad_stats=Statistics(norm=0.5))
    later = msgspec.structs.replace(record.snapshots[1], moment=5, version=7)
    other = msgspec.structs.replace(later, grad_version=1)
    for last, shown in ((later, "norm 0.5"), (other, "present")):
        history = (record.snapshots[0], measured, last, *record.snapshots[2:])
        (row,) = [row for row in tensor_rows(two_leaves(small_values=(), snapshots=history)) if row.name == "w"]
        assert row.gradient == shown


def test_tracked_and_untracked_tensors_of_one_line_stand_apart() -> None:
    record = two_leaves(("w", "x", "x"))
    tensors = (*record.tensors[:2], msgspec.structs.replace(record.tensors[2], site=1))
    rows = [row for row in tensor_rows(msgspec.structs.replace(record, tensors=tensors)) if row.name == "x"]
    assert [(row.times, row.requires_grad) for row in rows] == [(1, False), (1, True)]


def test_of_a_large_gradient_that_arrived_the_norm_is_told():
    import msgspec

    from backprobe.show.tensor_table import tensor_rows
    from tests.support import samples

    record = samples.tutorial()
    small = {row.name: row.arrived for row in tensor_rows(record)}
    large = {row.name: row.arrived for row in tensor_rows(msgspec.structs.replace(record, small_values=()))}
    assert (small["z"], large["z"]) == ("[[1, 1]]", "norm 1")
    assert large["W"] is None
