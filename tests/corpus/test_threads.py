"""The sets of public threads and the later rounds: every claim is whole, names its thread, and agrees with its programs."""

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.corpus import symptoms
from tests.corpus.cases import Case, Corpus, CorrectProgram, Thread, load_set


@dataclass(frozen=True)
class Round:
    """What a set must have.

    Attributes:
        each: The smallest number of cases in a family.
        longest: The largest number of lines of a program.
        comments: Whether programs may have comments.
        has_threads: Whether every case names a thread.
    """

    name: str
    families: frozenset[str]
    each: int
    longest: int
    comments: bool
    has_threads: bool = True


ROUNDS = [
    Round(
        name="threads",
        families=frozenset({
            "partial-cut", "cause", "optimizer-time", "assignment-cut", "root", "evaluation", "other-loss", "helper",
            "identity", "experiment", "in-place", "uncovered",
        }),
        each=5, longest=80, comments=False,
    ),
    Round(
        name="threads2",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "identity", "loss", "mode", "numerics", "scale", "function", "hook", "distributed", "data",
        }),
        each=4, longest=90, comments=True,
    ),
    Round(
        name="round5",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "identity", "loss", "mode", "numerics", "scale", "function", "hook", "distributed", "data",
        }),
        each=2, longest=90, comments=True,
    ),
    Round(
        name="round6",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "identity", "loss", "mode", "numerics", "scale", "function", "hook", "data", "loading", "shape",
        }),
        each=1, longest=90, comments=True, has_threads=False,
    ),
    Round(
        name="round7",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data",
        }),
        each=1, longest=90, comments=True, has_threads=False,
    ),
    Round(
        name="round8",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data",
        }),
        each=1, longest=90, comments=True, has_threads=False,
    ),
    Round(
        name="round9",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data",
        }),
        each=1, longest=90, comments=True, has_threads=False,
    ),
    Round(
        name="round10",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data", "identity",
        }),
        each=1, longest=90, comments=False, has_threads=False,
    ),
    Round(
        name="round11",
        families=frozenset({
            "graph-break", "accumulation", "retention", "higher-order", "flags", "leaf", "in-place", "optimizer",
            "loss", "mode", "numerics", "scale", "function", "hook", "data", "identity",
        }),
        each=1, longest=110, comments=True, has_threads=False,
    ),
]  # fmt: skip
FORUM = re.compile(r"https://discuss\.pytorch\.org/t/[a-z0-9-]+/\d+(/\d+)?")
REPOSITORY = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TELLING = re.compile(r"bug|wrong|fault|mistake|fix|missing|forgot|should|instead", re.IGNORECASE)

each_round = pytest.mark.parametrize("expected", ROUNDS, ids=lambda expected: expected.name)


def programs(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every program of a set."""
    for case in corpus.cases:
        yield f"{case.id}, faulty", case.bad
        yield f"{case.id}, repaired", case.good
    for program in corpus.correct:
        yield program.name, program.text


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def claim_errors(expected: Round, case: Case) -> list[str]:
    """What a claim lacks."""
    found = []
    if case.category not in expected.families:
        found.append("category")
    if not all(SLUG.fullmatch(kind) for kind in (case.kind, *case.kinds_also_ok)):
        found.append("kinds")
    if not case.names:
        found.append("names")
    if not (case.title and case.symptom and case.cause and case.fix):
        found.append("texts")
    if bool(case.symptom_check) == bool(case.raises) or bool(case.raises) != bool(case.raises_message):
        found.append("symptom_check or raises")
    if expected.has_threads and not case.evidence:
        found.append("no thread")
    return found + thread_errors(case.evidence)


def thread_errors(evidence: Sequence[Thread]) -> list[str]:
    return [
        f"thread {thread.url}"
        for thread in evidence
        if not thread.title or not (FORUM.fullmatch(thread.url) or REPOSITORY.fullmatch(thread.url))
    ]


@each_round
def test_every_claim_is_whole(expected) -> None:
    cases = load_set(expected.name).cases
    assert {case.id: found for case in cases if (found := claim_errors(expected, case))} == {}


@each_round
def test_programs_are_of_a_readable_size_parse_and_do_not_tell(expected) -> None:
    for name, text in programs(load_set(expected.name)):
        compile(text, name, "exec")
        assert 15 <= len(text.splitlines()) <= expected.longest, name
        found = comments(text)
        assert not any(TELLING.search(comment) for comment in found) if expected.comments else found == [], name


@each_round
def test_each_family_of_faults_has_cases_and_correct_programs_say_what_they_resemble(expected) -> None:
    corpus = load_set(expected.name)
    assert min(Counter(case.category for case in corpus.cases)[family] for family in expected.families) >= expected.each
    assert all(set(program.families) <= expected.families and program.resembles for program in corpus.correct)


def test_no_program_is_in_two_rounds() -> None:
    texts = [text for expected in ROUNDS for _name, text in programs(load_set(expected.name))]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("bad", "good", "claim", "proved"),
    [
        ("x = 1\n", "x = 2\n", {"symptom_check": "x == 1"}, True),
        ("x = 1\n", "x = 1\n", {"symptom_check": "x == 1"}, False),
        ("x = 1\n", "1 / 0\n", {"symptom_check": "x == 1"}, False),
        ("x = 1\n", "x = 2\n", {}, False),
        ("1 / 0\n", "x = 2\n", {"raises": "ZeroDivisionError", "raises_message": "division"}, True),
        ("1 / 0\n", "x = 2\n", {"raises": "ZeroDivisionError", "raises_message": "modulo"}, False),
        ("x = 1\n", "x = 2\n", {"raises": "ZeroDivisionError", "raises_message": "division"}, False),
    ],
)
def test_a_claim_is_proved_by_what_plain_torch_does(bad, good, claim, proved) -> None:
    case = Case(
        id="first", category="c", kind="k", severity="warning", names=(), bad=bad, good=good, lines=(1,), also=(),
        **claim,
    )  # fmt: skip
    assert (list(symptoms.find_unproved(Corpus(name="set", cases=(case,), correct=()))) == []) is proved


def test_a_correct_program_that_raises_is_named() -> None:
    correct = (CorrectProgram(name="ends", text="x = 1\n"), CorrectProgram(name="raises", text="1 / 0\n"))
    (found,) = symptoms.find_unproved(Corpus(name="set", cases=(), correct=correct))
    assert found.startswith("raises: ")
