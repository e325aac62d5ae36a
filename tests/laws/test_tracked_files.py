"""What no tracked file may hold: a developer's machine, a registry's address, a secret."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written so that this file does not hold them itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/[\w.]"),
    "an address of a package registry": re.compile(r"(?:pypi|npmjs|pythonhosted|download[.]pytorch)[.](?:org|com)\b"),
    "a private key": re.compile(r"BEGIN [A-Z ]*PRIVATE" + " KEY"),
    "an API key": re.compile(r"\bbp_[a-z0-9]{6,}_[\w-]{40,}"),
}

HOSTILE = ROOT / "tests" / "hostile" / "baseline.txt"
"""Programs that go for what another machine holds, by the paths that it commonly has."""


def tracked(root: Path) -> Iterator[tuple[Path, str]]:
    """Each tracked file that is a text, and its text; a copy of the project without `.git` has none to look at."""
    if not (root / ".git").exists():
        pytest.skip("no git checkout: there are no tracked files")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    for path in (root / name for name in listed.split("\0") if name):
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            yield path, content.decode(errors="replace")


def find_forbidden(text: str) -> list[str]:
    """What of the forbidden this text holds."""
    return [f"{what}: {match.group()}" for what, pattern in FORBIDDEN.items() if (match := pattern.search(text))]


def test_no_tracked_file_holds_what_is_forbidden():
    found = {}
    for path, text in tracked(ROOT):
        if not path.is_relative_to(HOSTILE) and (what := find_forbidden(text)):
            found[str(path.relative_to(ROOT))] = what
    assert found == {}


@pytest.mark.parametrize(
    "text",
    ["see /ro" + "ot/notes", "cd /wo" + "rk/main", "https://py" + "pi.org/simple", "bp_live01_" + "x" * 43],
)
def test_what_is_forbidden_is_seen(text):
    assert find_forbidden(text)


@pytest.mark.parametrize("text", ["workers/sandbox", "a /workers path", "the root/child", "bp_<prefix>_<32 bytes>"])
def test_what_only_looks_like_it_is_left_alone(text):
    assert find_forbidden(text) == []
