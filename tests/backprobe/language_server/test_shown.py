"""What an editor shows of a result: hints, lenses, diagnostics, hovers, actions. Pure: no editor, no run."""

import ast

import msgspec
import pytest
from lsprotocol import types as lsp

from backprobe.language_server.actions import REASON, actions
from backprobe.language_server.diagnostics import diagnostics
from backprobe.language_server.hints import hints, inlay_hints, lenses
from backprobe.language_server.hovers import hover
from backprobe.language_server.runs.answers import findings_of
from backprobe.language_server.runs.results import Call, Failure, Gradless, decode_result, encode_result
from backprobe.rules.framework.finding import finding_json
from tests.backprobe.language_server.samples import NON_LEAF, PATH, TEXT, attached, only, place, result, tensor


def labels(shown, **kinds):
    return [(hint.position.line + 1, hint.label) for hint in inlay_hints(attached(), hints(shown, PATH, **kinds))]


def test_a_line_says_leaf_or_not_what_arrived_where_it_was_cut_and_what_is_held():
    assert labels(result()) == [
        (2, "not leaf, arrived 3.5"),
        (3, "leaf, grad None: cut at 4"),
        (4, "not leaf"),
        (5, "held 1.2 KiB"),
    ]


def test_each_kind_of_hint_can_be_switched_off():
    assert labels(result(), kinds={"gradient"}) == [(2, "arrived 3.5"), (3, "grad None: cut at 4")]
    assert labels(result(), kinds={"leaf"}) == [(2, "not leaf"), (3, "leaf"), (4, "not leaf")]
    assert labels(result(), kinds={"held"}) == [(5, "held 1.2 KiB")]
    assert labels(result(), kinds=()) == []


@pytest.mark.parametrize(
    ("facts", "label"),
    [
        ({"gradient": "[1, 1]"}, ["leaf"]),
        ({"why": Gradless(verdict="set-none", line=9, text="")}, ["leaf, grad None: set to None"]),
        ({"why": Gradless(verdict="not-used", text="")}, ["leaf, grad None: not used"]),
        ({"why": Gradless(verdict="no-backward-yet", text="")}, ["leaf, grad None: no backward yet"]),
        ({"requires_grad": False, "why": Gradless(verdict="requires-grad-false", line=3, text="never asked")}, []),
        (
            {
                "requires_grad": False,
                "why": Gradless(verdict="requires-grad-false", line=5, text="`.detach()` cut it off"),
            },
            ["grad None: cut at 5"],
        ),
    ],
)
def test_a_tensor_is_told_by_its_verdict(facts, label):
    assert [text for _, text in labels(result(tensors=(tensor("w", 3, **facts),), calls=()))] == label


def test_a_hint_has_at_most_forty_characters_and_no_control_character():
    odd = tensor("a\u202eb" * 20, 2, arrived="[" + "1.25, " * 30)
    shown = inlay_hints(attached(), hints(result(tensors=(odd, odd), calls=()), PATH))
    assert [len(hint.label) for hint in shown] == [40, 40]
    assert "\u202e" not in "".join(hint.label + hint.tooltip for hint in shown)


def test_several_tensors_of_a_line_are_named_and_many_are_counted():
    many = tuple(tensor(f"p{n}", 2, gradient="1") for n in range(5))
    assert labels(result(tensors=many, calls=())) == [
        (2, "p0: leaf"),
        (2, "p1: leaf"),
        (2, "p2: leaf"),
        (2, "and 2 more"),
    ]


def test_a_hint_stands_behind_its_line_where_that_is_now():
    document = attached("# new\n" + TEXT.replace("v = torch.full", "v = torch.fill"))
    assert [(hint.position.line, hint.position.character) for hint in inlay_hints(document, hints(result(), PATH))] == [
        (2, 55),
        (4, 29),
        (5, 32),
    ]


def test_the_line_that_a_hint_names_is_told_by_its_number_now():
    cut = result(calls=(), tensors=result().tensors[1:2])
    for text, label in (
        ("# new\n" + TEXT, "leaf, grad None: cut at 5"),
        (TEXT.replace("loss = (w", "loss = (v"), "leaf, grad None: cut"),
    ):
        assert [hint.label for hint in inlay_hints(attached(text), hints(cut, PATH))] == [label]
    told = hover(attached("# new\n" + TEXT), result(), PATH, lsp.Position(2, 0), markdown=False)
    assert told is not None and "1. line 7: " in told.contents.value
    told = hover(attached(TEXT.replace("print(w", "print( w")), result(), PATH, lsp.Position(1, 0), markdown=False)
    assert told is not None and "1. line 6, edited since: " in told.contents.value


def test_a_lens_counts_findings_and_bytes_and_opens_the_run():
    (lens,) = lenses(attached(), result(), PATH)
    assert (lens.command.title, lens.command.command, lens.range.start.line) == ("2 findings, 1.2 KiB held", "", 4)
    (lens,) = lenses(
        attached(), result(page="http://127.0.0.1/runs/run_1", calls=(Call(path=PATH, line=5, kept_bytes=0),)), PATH
    )
    assert (lens.command.title, lens.command.command) == ("2 findings, open run", "backprobe.openRun")
    assert lenses(attached(TEXT.replace("retain_graph=True", "")), result(), PATH) == []


def test_a_finding_is_a_diagnostic_with_its_reason_chain():
    shown = diagnostics(result(), PATH, only(attached()), "http://127.0.0.1")
    assert [(diagnostic.code, diagnostic.severity, diagnostic.range.start.line) for diagnostic in shown] == [
        ("BP101", lsp.DiagnosticSeverity.Warning, 1),
        ("BP307", lsp.DiagnosticSeverity.Information, 4),
    ]
    assert shown[0].code_description == lsp.CodeDescription(href="http://127.0.0.1/rules/BP101")
    (read,) = shown[0].related_information or ()
    assert (read.location.uri, read.location.range.start) == ("file:///w/train.py", lsp.Position(5, 6))
    assert diagnostics(result(), PATH, only(attached()), None)[0].code_description is None


def test_an_edited_line_has_no_diagnostic_and_one_that_led_to_it_no_place():
    shown = diagnostics(result(), PATH, only(attached(TEXT.replace("print(w.grad)", "print(w)"))), None)
    assert (shown[0].code, shown[0].related_information) == ("BP101", [])
    assert [
        diagnostic.code
        for diagnostic in diagnostics(result(), PATH, only(attached(TEXT.replace("ones(3", "ones(4"))), None)
    ] == ["BP307"]


def test_a_program_that_raised_is_a_diagnostic_on_the_line_that_did():
    failed = result(findings=(), failure=Failure(message="RuntimeError: a\x1b[31mb", path=PATH, line=5))
    (diagnostic,) = diagnostics(failed, PATH, only(attached()), None)
    assert (diagnostic.code, diagnostic.severity) == ("program-failed", lsp.DiagnosticSeverity.Error)
    assert (diagnostic.range.start, diagnostic.range.end) == (lsp.Position(4, 0), lsp.Position(4, 32))
    assert "\x1b" not in diagnostic.message
    for line in (None, 0, 900):
        (diagnostic,) = diagnostics(
            result(findings=(), failure=Failure(message="exit code 3", line=line)), PATH, only(attached()), None
        )
        assert diagnostic.range.start.line == (6 if line == 900 else 0)


def test_a_hover_tells_the_finding_its_chain_and_the_tensors_of_the_line():
    shown = hover(attached(), result(), PATH, lsp.Position(1, 20), markdown=True)
    assert shown is not None
    text = shown.contents.value
    assert text.startswith("**BP101 non-leaf-grad-read** (warning, proven)")
    assert "1. line 6: `.grad` of `w` is read here and is None" in text
    assert "Fix (unsafe): Require grad after the move" in text
    assert "```text\nw: float32[3]\nnot a leaf\n.grad is None: not a leaf\ngradient that arrived: 3.5\n```" in text
    plain = hover(attached(), result(), PATH, lsp.Position(1, 20), markdown=False)
    assert plain is not None and "**" not in plain.contents.value and plain.contents.kind == lsp.MarkupKind.PlainText
    assert hover(attached(), result(), PATH, lsp.Position(0, 0), markdown=True) is None
    assert (
        hover(attached(TEXT.replace("w = torch", "w  = torch")), result(), PATH, lsp.Position(1, 0), markdown=True)
        is None
    )


def test_no_text_of_a_program_is_markdown_of_ours():
    evil = msgspec.structs.replace(
        NON_LEAF, message="![x](http://evil/) <img src=x> [a](command:run) ` [b](http://evil/)"
    )
    bad = tensor("```\n[a](http://evil/)", 2, gradient="1")
    shown = hover(attached(), result(findings=(evil,), tensors=(bad,)), PATH, lsp.Position(1, 0), markdown=True)
    assert shown is not None
    text = shown.contents.value
    assert "\\!\\[x\\](http://evil/)" in text
    assert "\\<img" in text
    assert "\\[b\\]" in text
    assert text.count("```") == 2


def ask_diagnostics(shown=None):
    return diagnostics(shown or result(), PATH, only(attached()), None)


def test_only_a_safe_fix_is_preferred():
    found = actions(result(), PATH, ask_diagnostics(), only(attached()), versioned=True)
    assert [(action.title, action.is_preferred) for action in found if action.edit] == [
        ("Require grad after the move (may change what the program does)", False),
        ("Suppress non-leaf-grad-read here, with a reason", False),
        ("Let it go", True),
        ("Suppress needless-retain-graph here, with a reason", False),
    ]
    assert [action.command.arguments for action in found if action.command and not action.edit] == [
        ["non-leaf-grad-read"],
        ["needless-retain-graph"],
    ]


def test_each_action_that_edits_retires_its_finding():
    found = actions(result(), PATH, ask_diagnostics(), only(attached()), versioned=True)
    assert [action.command.arguments for action in found if action.edit] == [
        ["file:///w/train.py", fingerprint] for fingerprint in ["backprobe/v1:01"] * 2 + ["backprobe/v1:02"] * 2
    ]
    assert {action.command.command for action in found if action.edit} == {"backprobe.retire"}


def test_a_fix_that_was_tried_says_what_came_of_it():
    (first, *_), before = (
        result().findings,
        actions(result(), PATH, ask_diagnostics(), only(attached(TEXT)), versioned=True)[0],
    )
    told = finding_json(first) | {
        "trials": [
            {"fix": 0, "verdict": None, "why": None},
            {"fix": 0, "verdict": "changes-values", "why": "so"},
            {"fix": 0, "verdict": "confirmed", "why": ""},
        ]
    }
    (tried,) = findings_of([told])
    found = actions(result(findings=(tried,)), PATH, ask_diagnostics(), only(attached(TEXT)), versioned=True)[0]
    assert found.title == f"{before.title}, tried: changes values"


def applied(text: str, edits) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line
        line = lines[start.line]
        lines[start.line] = line[: start.character] + edit.new_text + line[end.character :]
    return "\n".join(lines)


def test_a_fix_changes_the_text_as_it_says():
    moved = attached("# new\n" + TEXT)
    first = actions(result(), PATH, ask_diagnostics(), only(moved), versioned=True)[0]
    (change,) = first.edit.document_changes
    assert (change.text_document.uri, change.text_document.version) == ("file:///w/train.py", 3)
    assert "w = torch.ones(3).to(torch.float64).requires_grad_()" in applied("# new\n" + TEXT, change.edits)


def test_no_fix_is_offered_once_a_line_of_it_was_edited():
    stale = attached(TEXT.replace("retain_graph=True", "retain_graph=False"))
    found = actions(result(), PATH, ask_diagnostics(), only(stale), versioned=True)
    assert [action.title for action in found if "retain" in action.title or "Let" in action.title] == []


def test_an_editor_without_versions_gets_plain_changes():
    found = actions(result(), PATH, ask_diagnostics(), only(attached()), versioned=False)
    assert list(found[0].edit.changes) == ["file:///w/train.py"]


def test_a_diagnostic_of_another_tool_or_run_gets_nothing():
    other = lsp.Diagnostic(range=ask_diagnostics()[0].range, message="x", source="ruff", data="backprobe/v1:01")
    gone = lsp.Diagnostic(range=ask_diagnostics()[0].range, message="x", source="backprobe", data="backprobe/v1:99")
    odd = lsp.Diagnostic(range=ask_diagnostics()[0].range, message="x", source="backprobe", data={"a": 1})
    assert actions(result(), PATH, [other, gone, odd], only(attached()), versioned=True) == []


@pytest.mark.parametrize(
    ("text", "line", "head"),
    [
        ("a = 1\nb = 2\n", 2, 2),
        ("x = f(\n    w,\n)\n", 2, 1),
        ("if a:\n    b = f(\n        w)\n", 3, 2),
        ("s = '''\nw\n'''\n", 2, 1),
        ("@d\ndef f():\n    return 1\n", 3, 3),
        ("if a: b = w\n", 1, 1),
        ("x = 1 + \\\n    w\n", 2, 1),
    ],
)
def test_a_suppression_stands_above_its_statement_and_the_engine_reads_it(text, line, head):
    finding = msgspec.structs.replace(NON_LEAF, location=place(line, 1, 1), related=(), fixes=())
    shown = result(texts={PATH: text}, findings=(finding,), tensors=(), calls=())
    document = attached(text, text)
    diagnostic = diagnostics(shown, PATH, only(document), None)
    (suppress,) = [
        action for action in actions(shown, PATH, diagnostic, only(document), versioned=False) if action.edit
    ]
    (edit,) = suppress.edit.changes["file:///w/train.py"]
    assert edit.range.start == lsp.Position(head - 1, 0)
    changed = applied(text, [edit])
    assert ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))
    (comment,) = read_comments(changed)
    assert (comment.names, comment.reason) == (("non-leaf-grad-read",), REASON)
    assert comment.covers(0, head + 1)


def read_comments(text):
    from backprobe.rules.framework.suppression_comments import comments
    from tests.backprobe.show.records import two_leaves

    record = two_leaves()
    source = msgspec.structs.replace(record.sources[0], source=0, text=text)
    return comments(msgspec.structs.replace(record, sources=(source,)))


def test_a_text_that_cannot_be_parsed_gets_no_suppression():
    document = attached(TEXT + "x = (\n")
    found = actions(result(), PATH, ask_diagnostics(), only(document), versioned=True)
    assert [action.title for action in found if "Suppress" in action.title] == []


def test_a_result_is_kept_and_read_back_whole():
    kept = result(failure=Failure(message="x", path=PATH, line=2), page="http://127.0.0.1/runs/run_1")
    assert decode_result(encode_result(kept)) == kept
