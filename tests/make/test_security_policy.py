"""SECURITY.md says where to report, what is supported and how long a patch takes, and names only what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
POLICY = ROOT / "SECURITY.md"


@pytest.mark.parametrize(
    "heading", ["Reporting a vulnerability", "Supported versions", "What counts as a vulnerability"]
)
def test_it_has_the_parts_that_a_reporter_looks_for(heading):
    assert re.search(rf"^## {heading}$", POLICY.read_text(), re.MULTILINE)


def test_each_kind_of_vulnerability_has_a_time_for_its_patch():
    assert len(re.findall(r"^\| \d+ days after that \| release a patch", POLICY.read_text(), re.MULTILINE)) == 2


def test_the_files_that_it_names_exist():
    named = re.findall(r"`([\w./-]+\.(?:md|txt|yml))`", POLICY.read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
