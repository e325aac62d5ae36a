"""The format of the corpus: what a file says, what is refused and how, and that no case is lost."""

import re

import pytest

from tests.corpus.cases import CORPORA, SETS, Thread, load_corpus, load_set

CASE = """\
# /// case
# category = "leaf"
# kind = "missing-detach"
# kinds_also_ok = ["second-name"]
# severity = "warning"
# names = ["w"]
# evidence = [
#     { url = "https://github.com/a/b/issues/1", title = "A title" },
# ]
# ///
#-
w = 1  #- here
#+ w = 2
#+
x = '''  #! also
two '''
#+     y = 3
  #-
print(w)  #! here
"""
CORRECT = """\
# /// correct first
# families = ["leaf"]
# resembles = "a cut"
# ///

x = 1

# /// correct second
# ///
x = 2
"""
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (\d+) \|$", re.MULTILINE)
"""A set in the README, with its cases and correct programs."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cut.py").write_text(CASE)
    (tmp_path / "correct.py").write_text(CORRECT)
    return tmp_path


def test_a_case_file_gives_both_programs_to_the_byte_and_the_marked_lines(folder) -> None:
    (case,) = load_corpus(folder).cases
    assert case.bad == "\nw = 1\nx = '''\ntwo '''\n\nprint(w)\n"
    assert case.good == "w = 2\n\nx = '''\ntwo '''\n    y = 3\nprint(w)\n"
    assert (case.lines, case.also) == ((2, 6), (3,))


def test_the_header_of_a_case_file_gives_its_claims(folder) -> None:
    (case,) = load_corpus(folder).cases
    assert (case.id, case.category, case.kind, case.severity, case.names) == (
        "cut", "leaf", "missing-detach", "warning", ("w",)
    )  # fmt: skip
    assert case.evidence == (Thread(url="https://github.com/a/b/issues/1", title="A title"),)
    assert case.kinds_also_ok == ("second-name",)
    assert case.kinds[0] == "second-name"
    assert len(case.kinds) > 1, "kind_names.toml has more names for missing-detach"


def test_correct_programs_are_read_one_after_the_other(folder) -> None:
    first, second = load_corpus(folder).correct
    assert (first.name, first.text, first.families, first.resembles) == ("first", "\nx = 1\n\n", ("leaf",), "a cut")
    assert (second.name, second.text, second.families, second.resembles) == ("second", "x = 2\n", (), "")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (CASE, "", "cut.py:1: a case file must begin with a header"),
        ("# /// case\n", "", "cut.py:1: a case file must begin with a header"),
        ("# ///\n", "", "cut.py:1: the header is not closed"),
        ("# names", "names", "cut.py:6: a line of a header must begin with `# `"),
        ('"leaf"', "leaf", r"cut.py:1: the header is not TOML. Correct it: Invalid value \(at line 2"),
        ("# kind =", "# sort =", "cut.py:1: a claim is not right. .* unknown field `sort`"),
        ('# kind = "missing-detach"\n', "", "cut.py:1: a claim is not right. .* missing required field `kind`"),
        ('"warning"', '"info"', r"cut.py:1: a claim is not right. .* 'info' - at `\$.severity`"),
        ("#- here", "#- hear", "cut.py:12: `#-`, `#\\+` and `#!` belong to marks alone"),
        ("  #! also", " #! also", "cut.py:15: `#-`"),
        ("#+ w = 2", "#+w = 2", "cut.py:13: `#-`"),
        ("#+ w = 2", "#+ w = 2  #! also", "cut.py:13: `#-`"),
        ("  #! here", "  #!", "cut.py:19: `#-`"),
        ("print(w)  #! here\n", "print(w)", "cut.py:19: the last line has no newline"),
    ],
)
def test_a_malformed_case_file_is_refused_with_its_line(folder, old, new, error) -> None:
    assert old in CASE
    (folder / "cut.py").write_text(CASE.replace(old, new))
    with pytest.raises(ValueError, match=error):
        load_corpus(folder)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("x = 1  #-\n", "cut.py:11: no line is marked"),
        ("x = 1  #! here\n", "cut.py:11: the repair changes nothing"),
    ],
)
def test_a_case_file_needs_a_marked_line_and_a_repair(folder, program, error) -> None:
    header = CASE[: CASE.index("# ///\n") + len("# ///\n")]
    (folder / "cut.py").write_text(header + program)
    with pytest.raises(ValueError, match=error):
        load_corpus(folder)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("# /// correct first\n", "", "correct.py:1: no program is named here"),
        ("correct second", "correct first", "correct.py:8: `first` is the name of a program above"),
        ("# families", "# family", "correct.py:1: a claim of `first` is not right. .* unknown field `family`"),
        ("# ///\nx = 2\n", "x = 2\n", "correct.py:8: the header is not closed"),
    ],
)
def test_a_malformed_file_of_correct_programs_is_refused_with_its_line(folder, old, new, error) -> None:
    assert old in CORRECT
    (folder / "correct.py").write_text(CORRECT.replace(old, new))
    with pytest.raises(ValueError, match=error):
        load_corpus(folder)


def test_every_folder_is_a_set_and_no_case_is_lost() -> None:
    folders = {path.name for path in CORPORA.iterdir() if path.is_dir() and not path.name.startswith("__")}
    assert folders == set(SETS)
    corpora = [load_set(name) for name in SETS]
    counts = [(corpus.name, str(len(corpus.cases)), str(len(corpus.correct))) for corpus in corpora]
    assert ROW.findall((CORPORA / "README.md").read_text()) == counts


@pytest.mark.parametrize("name", SETS)
def test_every_case_has_two_programs_that_differ_and_marked_lines_with_text(name) -> None:
    for case in load_set(name).cases:
        lines = case.bad.splitlines()
        assert case.bad != case.good, case.id
        assert all(lines[at - 1].strip() for at in (*case.lines, *case.also)), case.id
