"""The corpora of public threads: every claim is whole, names its thread, and agrees with its programs."""

import io
import json
import re
import tokenize
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.corpus import symptoms
from tests.corpus.cases import OWN, with_sidecars


@dataclass(frozen=True)
class Round:
    """What a set must have.

    Attributes:
        each: The smallest number of cases in a family.
        longest: The largest number of lines of a program.
        comments: Whether programs may have comments.
    """

    folder: Path
    families: frozenset[str]
    cases: int
    clean: int
    each: int
    longest: int
    comments: bool
    told_in_public: bool = True


ROUNDS = [
    Round(
        folder=OWN / "threads",
        families=frozenset({
            "partial-cut", "cause", "optimizer-time", "assignment-cut", "root", "evaluation", "other-loss", "helper",
            "identity", "experiment", "in-place", "uncovered",
        }),
        cases=100, clean=50, each=5, longest=80, comments=False,
    ),
    Round(
        folder=OWN / "threads2",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "identity", "loss", "mode", "numerics", "scale", "function", "hook", "distributed", "data",
        }),
        cases=100, clean=40, each=4, longest=90, comments=True,
    ),
    Round(
        folder=OWN / "round5",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "identity", "loss", "mode", "numerics", "scale", "function", "hook", "distributed", "data",
        }),
        cases=90, clean=50, each=2, longest=90, comments=True,
    ),
    Round(
        folder=OWN / "round6",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "identity", "loss", "mode", "numerics", "scale", "function", "hook", "data", "loading", "shape",
        }),
        cases=72, clean=40, each=1, longest=90, comments=True, told_in_public=False,
    ),
    Round(
        folder=OWN / "round7",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data",
        }),
        cases=72, clean=40, each=1, longest=90, comments=True, told_in_public=False,
    ),
    Round(
        folder=OWN / "round8",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data",
        }),
        cases=72, clean=40, each=1, longest=90, comments=True, told_in_public=False,
    ),
    Round(
        folder=OWN / "round9",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data",
        }),
        cases=72, clean=40, each=1, longest=90, comments=True, told_in_public=False,
    ),
    Round(
        folder=OWN / "round10",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data", "identity",
        }),
        cases=72, clean=39, each=1, longest=90, comments=False, told_in_public=False,
    ),
    Round(
        folder=OWN / "round11",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data", "identity",
        }),
        cases=72, clean=39, each=1, longest=110, comments=True, told_in_public=False,
    ),
]  # fmt: skip
THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")
FORUM = re.compile(r"t/[a-z0-9-]+/\d+(/\d+)?")
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TELLING = re.compile(r"bug|wrong|fault|mistake|fix|missing|forgot|should|instead", re.IGNORECASE)

rounds = pytest.mark.parametrize("one", ROUNDS, ids=lambda one: one.folder.name)


def claims(folder: Path) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("cases/*/case.json"))}


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def wrong(one: Round, name: str, told: dict) -> list[str]:
    """What a claim lacks, or says otherwise than its programs."""
    bad, good = (one.folder / "cases" / name / file for file in ("bad.py", "good.py"))
    lines, expected, found = bad.read_text().splitlines(), told["expected"], []
    named = [*expected["lines"], *expected["lines_also_ok"]]
    if told["id"] != name or told["category"] not in one.families:
        found.append("id or category")
    if not expected["lines"] or len(named) != len(set(named)) or not set(named) <= set(range(1, len(lines) + 1)):
        found.append("lines")
    elif [lines[at - 1].strip() for at in expected["lines"]] != expected["line_text"]:
        found.append("line_text")
    if not all(SLUG.fullmatch(kind) for kind in (expected["kind"], *expected["kinds_also_ok"])):
        found.append("kinds")
    if expected["severity"] not in {"error", "warning", "info"} or not expected["names"]:
        found.append("severity or names")
    if not all(told[key] for key in ("title", "symptom", "cause", "fix")):
        found.append("texts")
    if bool(told["symptom_check"]) == bool(told["raises"]) or bool(told["raises"]) != bool(told["raises_message"]):
        found.append("symptom_check or raises")
    if bad.read_text() == good.read_text():
        found.append("the programs are the same")
    return found + (threads_wrong(told["evidence"]) if one.told_in_public or told["evidence"] else [])


def threads_wrong(evidence: list[dict]) -> list[str]:
    found = [] if evidence else ["no thread"]
    for one in evidence:
        repository, _, number = one["thread"].partition("#")
        addresses = {f"https://github.com/{repository}/{kind}/{number}" for kind in ("issues", "pull")}
        of_forum = FORUM.fullmatch(one["thread"]) and one["url"] == f"https://discuss.pytorch.org/{one['thread']}"
        of_repository = THREAD.fullmatch(one["thread"]) and one["url"] in addresses
        if not one["title"] or not (of_forum or of_repository):
            found.append(f"thread {one['thread']}")
    return found


@rounds
def test_every_claim_is_whole_and_agrees_with_its_programs(one) -> None:
    found = {name: said for name, told in claims(one.folder).items() if (said := wrong(one, name, told))}
    assert found == {}


@rounds
def test_programs_are_of_a_readable_size_parse_and_do_not_tell(one) -> None:
    for path in one.folder.rglob("*.py"):
        text = path.read_text()
        compile(text, str(path), "exec")
        assert 15 <= len(text.splitlines()) <= one.longest, path
        told = comments(text)
        assert not any(TELLING.search(comment) for comment in told) if one.comments else told == [], path


@rounds
def test_each_family_of_faults_has_cases_and_the_list_is_complete(one) -> None:
    listed = json.loads((one.folder / "manifest.json").read_text())
    corpus = with_sidecars(one.folder)
    assert len(corpus.cases) >= one.cases
    assert len(corpus.clean) >= one.clean
    assert min(Counter(case.category for case in corpus.cases)[family] for family in one.families) >= one.each
    assert listed["cases"] == [
        {"id": case.id, "category": case.category, "kind": case.kind} for case in corpus.cases
    ]  # fmt: skip
    assert [program["name"] for program in listed["clean"]] == list(corpus.clean)
    assert all(set(program["families"]) <= one.families and program["resembles"] for program in listed["clean"])


def test_no_program_stands_in_two_rounds() -> None:
    texts = [path.read_text() for one in ROUNDS for path in one.folder.rglob("*.py")]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("bad", "good", "claim", "proved"),
    [
        ("x = 1\n", "x = 2\n", {"symptom_check": "x == 1"}, True),
        ("x = 1\n", "x = 1\n", {"symptom_check": "x == 1"}, False),
        ("x = 1\n", "1 / 0\n", {"symptom_check": "x == 1"}, False),
        ("1 / 0\n", "x = 2\n", {"raises": "ZeroDivisionError", "raises_message": "division"}, True),
        ("1 / 0\n", "x = 2\n", {"raises": "ZeroDivisionError", "raises_message": "modulo"}, False),
        ("x = 1\n", "x = 2\n", {"raises": "ZeroDivisionError", "raises_message": "division"}, False),
    ],
)
def test_a_claim_is_proved_by_what_plain_torch_does(tmp_path, bad, good, claim, proved) -> None:
    folder = tmp_path / "cases" / "one"
    folder.mkdir(parents=True)
    (folder / "bad.py").write_text(bad)
    (folder / "good.py").write_text(good)
    told = {"id": "one", "symptom_check": None, "raises": None, "raises_message": None, **claim}
    (folder / "case.json").write_text(json.dumps(told))
    assert (list(symptoms.unproved(tmp_path)) == []) is proved
