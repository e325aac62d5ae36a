"""The clone is enough: nothing tracked reads a file beside it, so that a test is the same wherever a clone lies."""

import re

import pytest

from tests.laws.test_tracked_files import ROOT, tracked

# Written so that this file does not hold them itself.
OUTSIDE = {
    "a folder beside the clone": re.compile(r"[.][.]/" + r"shared\b"),
    "a path above the root": re.compile(r"\bROOT[.]" + r"parent"),
    "a variable for such a folder": re.compile("BACKPROBE_" + "SHARED"),
}


def pointers(text: str) -> list[str]:
    """What of a file points out of the clone."""
    return [what for what, pattern in OUTSIDE.items() if pattern.search(text)]


def test_nothing_tracked_points_out_of_the_clone() -> None:
    found = {}
    for path, text in tracked(ROOT):
        if what := pointers(text):
            found[str(path.relative_to(ROOT))] = what
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "see ../" + "shared/x",
        'f"{HERE}/../../' + 'shared"',
        "ROOT." + "parent / 'a'",
        'os.environ["BACKPROBE_' + 'SHARED"]',
    ],
)
def test_a_pointer_is_seen(text: str) -> None:
    assert pointers(text)
