"""The words of the code's closed lists stand in GLOSSARY.md, each defined once."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

from backprobe.record import Moment

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "GLOSSARY.md").read_text()
DEFINED = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", TEXT, re.MULTILINE)
ARCHITECTURE_WORDS = set(
    re.split(
        ", ",
        "snippet, run, record, tensor, binding, moment, snapshot, backward call, retention, finding, rule, "
        "outcome, isolation, claim, lease, attempt, fence, wake-up, zygote, child, supervisor, executor, reaper, tier, "
        "site, frame, row, status",
    )
)


def words_in_code(text: str) -> set[str]:
    """What the glossary quotes as a value of the code."""
    return set(re.findall(r"`([a-z][a-z-]*)`", text))


def test_each_word_is_defined_once_in_one_sentence():
    words = [word for word, _ in DEFINED]
    assert sorted(words) == sorted(set(words))
    assert [word for word, sentence in DEFINED if not sentence.endswith(".")] == []


def test_the_glossary_stays_below_sixty_entries():
    assert len(DEFINED) < 60


def test_the_words_of_the_architecture_are_defined():
    assert ARCHITECTURE_WORDS - {word for word, _ in DEFINED} == set()


def test_the_moments_are_those_of_the_record():
    kinds = set(get_args(get_type_hints(Moment)["kind"]))
    assert kinds <= words_in_code(dict(DEFINED)["moment"])


def test_the_statuses_are_those_of_the_store():
    from store.runs.states import NEXT  # the state table

    states = set(NEXT) | {state for after in NEXT.values() for state in after}
    assert words_in_code(dict(DEFINED)["status"]) == states
