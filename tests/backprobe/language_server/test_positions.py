"""Columns of Backprobe and of an editor, and results that move with their lines."""

import random

import pytest
from lsprotocol import types as lsp

from backprobe.language_server.documents import Document, carry_origins
from backprobe.language_server.positions import column_at, split_lines, units_at
from backprobe.rules.framework.finding import Region

SIGMA = "\U0001d70e"
"""One code point, two UTF-16 units, four bytes."""


@pytest.mark.parametrize(
    ("line", "column", "utf8", "utf16"),
    [
        ("w = 1", 4, 4, 4),
        (f"{SIGMA} = w.grad", 4, 7, 5),
        ("\tw = 1", 1, 1, 1),
        ("é = w", 4, 5, 4),
        ("漢字 = w", 5, 9, 5),
        (f"x = '{SIGMA}{SIGMA}'; y", 11, 17, 13),
        ("\u0061\u0301 = w", 5, 6, 5),
        ("short", 99, 5, 5),
    ],
)
def test_columns_are_counted_in_the_units_of_the_editor(line, column, utf8, utf16):
    real = min(column, len(line))
    for encoding, units in (("utf-8", utf8), ("utf-16", utf16), ("utf-32", real)):
        assert units_at(line, column, encoding) == units
        assert column_at(line, units, encoding) == real


def test_units_are_those_of_the_codecs():
    drawn = random.Random(22)
    for _ in range(300):
        line = "".join(drawn.choice(f"aé漢{SIGMA}\t\U0001f600\u200d ") for _ in range(drawn.randrange(30)))
        column = drawn.randrange(len(line) + 1)
        assert units_at(line, column, "utf-16") == len(line[:column].encode("utf-16-le")) // 2
        assert units_at(line, column, "utf-8") == len(line[:column].encode())
        assert column_at(line, units_at(line, column, "utf-16"), "utf-16") == column


def test_a_place_inside_a_character_is_the_characters_own():
    assert column_at(f"{SIGMA}w", 1, "utf-16") == 0
    assert column_at(f"{SIGMA}w", 3, "utf-8") == 0
    assert column_at("ab", -1, "utf-16") == 0


def test_a_lone_surrogate_has_a_width():
    assert units_at("\ud800w", 1, "utf-16") == 1
    assert units_at("\ud800w", 1, "utf-8") == 3


def test_lines_end_where_python_ends_them():
    assert split_lines("a\r\nb\rc\n") == ["a", "b", "c", ""]
    assert split_lines("a\x0cb\u2028c\x85d") == ["a\x0cb\u2028c\x85d"]  # str.splitlines makes four of it


def region(line: int, start: int, end: int, last: int | None = None) -> Region:
    return Region(start_line=line, start_col=start, end_line=last or line, end_col=end)


def build_range(first: int, column: int, last: int, end: int) -> lsp.Range:
    return lsp.Range(lsp.Position(first, column), lsp.Position(last, end))


def edit(document: Document, first: int, column: int, last: int, end: int, text: str) -> None:
    document.change(lsp.TextDocumentContentChangePartial(range=build_range(first, column, last, end), text=text))


def open_document(text: str) -> Document:
    document = Document("file:///a.py", text, 1, "utf-16")
    document.attach(text)
    return document


TEXT = f"import torch\n{SIGMA} = 1; w = make()\nloss = w.sum()\nloss.backward()\n"


def test_a_region_is_told_in_units_behind_a_character_beyond_the_basic_plane():
    assert open_document(TEXT).range_now(region(2, 8, 18)) == build_range(1, 8, 1, 18)
    assert open_document(TEXT).range_now(region(2, 1, 2)) == build_range(1, 0, 1, 2)


def test_crlf_changes_no_column():
    document = Document("file:///a.py", TEXT.replace("\n", "\r\n"), 1, "utf-16")
    document.attach(TEXT)
    assert document.range_now(region(4, 1, 16)) == build_range(3, 0, 3, 15)
    assert document.lines[3] == "loss.backward()"


def test_results_move_with_lines_put_in_above():
    document = open_document(TEXT)
    edit(document, 0, 0, 0, 0, "# a\n# b\n")
    assert document.range_now(region(4, 1, 16)) == build_range(5, 0, 5, 15)
    edit(document, 1, 0, 3, 0, "")
    assert document.range_now(region(4, 1, 16)) == build_range(3, 0, 3, 15)


def test_a_line_whose_text_changes_loses_its_results_at_once_and_no_other_does():
    document = open_document(TEXT)
    edit(document, 2, 4, 2, 4, " ")
    assert document.line_now(2) is None
    assert [document.line_now(n) for n in (0, 1, 3)] == [0, 1, 3]
    edit(document, 2, 4, 2, 5, "")  # typed back: what was dropped stays so until the next run
    assert document.text == TEXT
    assert document.line_now(2) is None


def test_enter_at_the_end_and_at_the_start_of_a_line_keeps_it():
    document = open_document(TEXT)
    edit(document, 2, 14, 2, 14, "\n")
    edit(document, 1, 0, 1, 0, "\n")
    assert [document.line_now(n) for n in range(4)] == [0, 2, 3, 5]


def test_a_region_over_several_lines_goes_when_one_of_them_was_edited():
    text = "a = f(\n    1,\n    2,\n)\nb = 2\n"
    document = open_document(text)
    assert document.range_now(region(1, 1, 2, 4)) == build_range(0, 0, 3, 1)
    edit(document, 2, 4, 2, 5, "3")
    assert document.range_now(region(1, 1, 2, 4)) is None
    assert document.range_now(region(5, 1, 6)) == build_range(4, 0, 4, 5)


def test_a_region_that_a_line_was_put_into_is_gone():
    document = open_document("a = f(\n    1,\n)\n")
    edit(document, 1, 0, 1, 0, "    0,\n")
    assert document.range_now(region(1, 1, 2, 3)) is None


def test_a_region_that_takes_the_line_with_its_end_ends_on_the_next_one():
    document = open_document("a = 1\nb = 2\n")
    edit(document, 1, 0, 1, 5, "c = 3")
    assert document.range_now(region(1, 1, 1, 2)) == build_range(0, 0, 1, 0)


def test_a_formatter_that_replaces_the_whole_text_keeps_the_lines_that_stay():
    document = open_document(TEXT)
    edit(document, 0, 0, 4, 0, TEXT.replace("import torch\n", "import os\n\nimport torch\n"))
    assert [document.line_now(n) for n in range(4)] == [2, 3, 4, 5]


def test_a_change_without_a_range_is_the_whole_text():
    document = open_document(TEXT)
    document.change(lsp.TextDocumentContentChangeWholeDocument(text="x = 1\nloss.backward()\n"))
    assert [document.line_now(n) for n in range(4)] == [None, None, None, 1]


def test_an_edit_behind_the_end_is_at_the_end():
    document = open_document("a = 1")
    edit(document, 7, 3, 9, 0, "\nb = 2")
    assert document.lines == ["a = 1", "b = 2"]


def test_a_text_opened_after_it_was_edited_keeps_what_is_still_as_it_ran():
    document = Document("file:///a.py", TEXT.replace("make()", "make(2)"), 1, "utf-16")
    document.attach(TEXT)
    assert [document.line_now(n) for n in range(4)] == [0, None, 2, 3]


def test_any_edits_leave_only_lines_that_are_as_they_ran():
    drawn = random.Random(7)
    ran = "".join(f"x{n % 5} = {SIGMA if n % 3 else 'a'}\n" for n in range(40))
    document = open_document(ran)
    shadow = ran
    for _ in range(300):
        lines = split_lines(shadow)
        first = drawn.randrange(len(lines))
        last = min(len(lines) - 1, first + drawn.randrange(3))
        column, end = drawn.randrange(len(lines[first]) + 1), drawn.randrange(len(lines[last]) + 1)
        if first == last and end < column:
            column, end = end, column
        text = drawn.choice(["", "x", "\n", SIGMA, "x1 = a\n", "\r\n", "a\nb"])
        start_units, end_units = units_at(lines[first], column, "utf-16"), units_at(lines[last], end, "utf-16")
        edit(document, first, start_units, last, end_units, text)
        shadow = "\n".join([*lines[:first], lines[first][:column] + text + lines[last][end:], *lines[last + 1 :]])
        assert document.lines == split_lines(shadow)
        now = [(n, line) for n in range(40) if (line := document.line_now(n)) is not None]
        assert all(document.lines[line] == split_lines(ran)[n] for n, line in now)
        assert len({line for _, line in now}) == len(now)


def test_an_edit_of_a_long_file_touches_only_its_own_lines(monkeypatch):
    """The cost of a keystroke does not grow with the file: two thousand lines are not compared again."""
    seen = []
    monkeypatch.setattr(
        "backprobe.language_server.documents.carry_origins",
        lambda origins, old, new: seen.append(len(old)) or carry_origins(origins, old, new),
    )
    document = open_document("".join(f"line{n} = {n}\n" for n in range(2000)))
    seen.clear()
    edit(document, 1000, 0, 1000, 0, "x")
    assert seen == [1]
    assert document.line_now(999) == 999
    assert document.line_now(1000) is None
    assert document.line_now(1999) == 1999
