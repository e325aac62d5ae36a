"""Law 1 of the house: a folder is small enough to be looked over, and says at its door what lives in it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service")
MOST_MODULES = 15
MOST_README_LINES = 6
"""Its title counts, blank lines do not."""


def modules(folder: Path) -> list[str]:
    """The modules that lie in a folder itself; what makes it a package is none."""
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))


def is_family(folder: Path) -> bool:
    """A family of rules: one file per rule, however many it has; `backprobe/rules/README.md` speaks for all of them."""
    texts = (path.read_text() for path in folder.glob("*.py"))
    return folder.parent.parts[-2:] == ("backprobe", "rules") and any("RULE = Rule(" in text for text in texts)


def packages(root: Path) -> list[Path]:
    return [path.parent for name in PACKAGES for path in sorted((root / name).rglob("__init__.py"))]


def crowded(root: Path) -> dict[str, int]:
    """Folders with too many modules, with their number."""
    found = {str(folder.relative_to(root)): len(modules(folder)) for folder in packages(root) if not is_family(folder)}
    return {name: number for name, number in found.items() if number > MOST_MODULES}


def without_a_sign(root: Path) -> dict[str, str]:
    """Folders whose README is missing, says nothing, or says too much."""
    found = {}
    for folder in packages(root):
        name, readme = str(folder.relative_to(root)), folder / "README.md"
        if is_family(folder):
            continue
        lines = [line for line in readme.read_text().splitlines() if line.strip()] if readme.is_file() else []
        if len(lines) < 2 or len(lines) > MOST_README_LINES or lines[0] != f"# {name}":
            found[name] = f"{len(lines)} lines" if lines else "no README.md"
    return found


def test_no_folder_is_crowded():
    assert crowded(ROOT) == {}


def test_each_folder_says_what_lives_in_it():
    assert without_a_sign(ROOT) == {}


def test_a_family_is_a_folder_with_rules():
    rules = ROOT / "backprobe" / "rules"
    assert is_family(rules / "leaf")
    assert not is_family(rules / "framework")
    assert not is_family(rules)


def planted(root: Path, name: str, number: int, readme: str | None, text: str = "") -> None:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    for n in range(number):
        (folder / f"module_{n}.py").write_text(text)
    if readme is not None:
        (folder / "README.md").write_text(readme)


@pytest.mark.parametrize(
    ("number", "name", "text", "seen"),
    [
        (15, "store/runs", "", {}),
        (16, "store/runs", "", {"store/runs": 16}),
        (16, "backprobe/rules/leaf", "RULE = Rule(", {}),
        (16, "backprobe/rules/leaf", "", {"backprobe/rules/leaf": 16}),
        (16, "store/runs", "RULE = Rule(", {"store/runs": 16}),
    ],
)
def test_a_crowded_folder_is_seen(tmp_path, number, name, text, seen):
    planted(tmp_path, name, number, None, text)
    assert crowded(tmp_path) == seen


@pytest.mark.parametrize(
    ("readme", "seen"),
    [
        ("# store/runs\n\nRuns.\n", {}),
        (None, {"store/runs": "no README.md"}),
        ("# store/runs\n", {"store/runs": "1 lines"}),
        ("# runs\n\nRuns.\n", {"store/runs": "2 lines"}),
        ("# store/runs\n" + "More.\n" * 6, {"store/runs": "7 lines"}),
    ],
)
def test_a_folder_without_a_sign_is_seen(tmp_path, readme, seen):
    planted(tmp_path, "store/runs", 1, readme)
    assert without_a_sign(tmp_path) == seen
