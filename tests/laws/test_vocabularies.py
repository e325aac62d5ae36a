"""Law 6 of the house: a vocabulary, a closed list of words, has one file; everybody else imports it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service")
VOCABULARIES = {
    "levels of isolation": ("backprobe/isolation.py", "none process namespace gvisor"),
    "how bad a finding is": ("backprobe/severity.py", "error warning note"),
    "how sure a rule is": ("backprobe/severity.py", "proven likely heuristic"),
    "tiers": ("backprobe/tiers.py", "state grad full deep"),
    "kinds of moments": (
        "backprobe/record/rows/events.py",
        "after-statement before-backward after-backward optimizer-step end",
    ),
    "kinds of modes": (
        "backprobe/record/rows/interventions.py",
        "grad inference autocast training anomaly deterministic",
    ),
    "forms of modes": ("backprobe/record/rows/interventions.py", "with decorator call unknown"),
    "anomalies": ("backprobe/record/rows/series.py", "non-finite exception gradient-stopped warning none-read"),
    "states of a retained graph": ("backprobe/record/rows/graph.py", "held freed partly-freed released"),
    "statuses of a run": ("store/runs/model.py", "queued running succeeded failed exceeded canceled lost"),
    "ends of a run": ("store/runs/model.py", "succeeded failed exceeded canceled lost"),
    "verdicts": ("backprobe/rules/policy.py", "pass warn fail error not-run"),
    "states of a group": ("store/findings/group_rows.py", "open acknowledged suppressed fixed"),
    "states of a delivery": ("store/webhooks/deliveries.py", "pending delivered dead canceled"),
}
"""Each with the file that holds it."""

DATABASE = "store/tables/"
"""The tables state their constraints themselves: what a database checks is changed by a migration, never by an import."""


def words_listed(tree: ast.AST) -> list[tuple[int, frozenset[str]]]:
    """Line and words of each `Literal[...]`, tuple, list and set of texts."""
    found = []
    for node in ast.walk(tree):
        listed = node.slice if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal") else node
        if isinstance(listed, ast.Tuple | ast.List | ast.Set):
            texts = [elt.value for elt in listed.elts if isinstance(elt, ast.Constant) and isinstance(elt.value, str)]
            if texts and len(texts) == len(listed.elts):
                found.append((listed.lineno, frozenset(texts)))
    return found


def second_copies(root: Path) -> list[str]:
    """Places that list a whole vocabulary beside the file that holds it, as `path:line what`."""
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            name = str(path.relative_to(root))
            for line, words in words_listed(ast.parse(path.read_text())):
                for what, (home, text) in VOCABULARIES.items():
                    if words == frozenset(text.split()) and name != home and not name.startswith(DATABASE):
                        found.append(f"{name}:{line} {what}")
    return sorted(set(found))


def test_no_vocabulary_is_listed_twice():
    assert second_copies(ROOT) == []


@pytest.mark.parametrize("what", VOCABULARIES)
def test_a_vocabulary_stands_in_its_file(what):
    home, text = VOCABULARIES[what]
    assert frozenset(text.split()) in {words for _, words in words_listed(ast.parse((ROOT / home).read_text()))}


@pytest.mark.parametrize(
    ("path", "text", "seen"),
    [
        ("service/x.py", "Level = Literal['warning', 'error', 'note']", ["service/x.py:1 how bad a finding is"]),
        ("store/x.py", "ORDER = ('gvisor', 'namespace', 'process', 'none')", ["store/x.py:1 levels of isolation"]),
        ("workers/x.py", "if x in {'pass', 'warn', 'fail', 'error', 'not-run'}: ...", ["workers/x.py:1 verdicts"]),
        ("store/tables/x.py", "one_of('level', ('error', 'warning', 'note'))", []),
        ("backprobe/severity.py", "LEVELS = ('error', 'warning', 'note')", []),
        ("service/x.py", "BAD = ('error', 'warning')", []),
    ],
)
def test_a_planted_copy_is_seen(tmp_path, path, text, seen):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    assert second_copies(tmp_path) == seen
