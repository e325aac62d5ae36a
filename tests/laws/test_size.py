"""Functions stay short and modules tell one story; the figures are printed."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service", "bench", "docs")
"""Without migrations: a revision is a list of tables, written once and never changed."""
MOST_FUNCTION_LINES = 80
USUAL_FUNCTION_LINES = 40
MODULE_LINES = 300
LONG_MODULES = {
    "backprobe/client/clients.py": "the same methods twice, for threads and for asyncio: side by side, so that they cannot drift",
    "backprobe/recorder/record_sender.py": "one thread and what the job calls of it: the two sides of one lock, side by side",
    "store/queries/ranks.py": "one question over the ranks of a job: the rows, their steps and where they part",
    "store/runs/model.py": "a run as it is submitted, claimed and read: the same fields, side by side",
    "backprobe/rules/gradient/custom_backward_constant.py": "a rule is one file, and 115 lines of it are its manual",
    "backprobe/rules/graph/missing_create_graph.py": "a rule is one file, and 100 lines of it are its manual",
    "backprobe/rules/training/causal_mask_flipped.py": "a rule is one file, and 100 lines of it are its manual",
    "backprobe/rules/training/constant_loss_term.py": "a rule is one file, and 100 lines of it are its manual",
    "backprobe/rules/graph/graph_retained_accumulator.py": "a rule is one file, and 110 lines of it are its manual",
    "backprobe/rules/graph/graph_retained_in_container.py": "a rule is one file, and 85 lines of it are its manual",
    "backprobe/rules/wiring/module_not_registered.py": "a rule is one file, and 105 lines of it are its manual",
    "backprobe/rules/leaf/freeze_without_effect.py": "a rule is one file, and 60 lines of it are its manual",
    "backprobe/rules/wiring/copy_is_alias.py": "a rule is one file, and 95 lines of it are its manual",
    "backprobe/rules/gradient/missing_zero_grad.py": "a rule is one file, and 100 lines of it are its manual",
    "backprobe/rules/mode/frozen_batch_norm_moves.py": "a rule is one file, and 100 lines of it are its manual",
    "backprobe/rules/gradient/other_loss_in_gradient.py": "a rule is one file, and 80 lines of it are its manual",
    "backprobe/rules/wiring/parameters_not_in_optimizer.py": "a rule is one file, and 130 lines of it are its manual",
}
"""Modules over `MODULE_LINES`, each with the reason why it is still one thing."""


def modules(root: Path, package: str) -> list[Path]:
    return sorted(path for path in (root / package).rglob("*.py"))


@cache
def function_lengths(path: Path) -> list[tuple[int, str]]:
    """Lines and name of each function, its docstring left out: documentation is not length."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            doc = node.body[0] if ast.get_docstring(node) is not None else None
            doc_lines = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
            found.append((node.end_lineno - node.lineno + 1 - doc_lines, node.name))
    return found


def too_long(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)} {name}: {lines} lines"
        for package in PACKAGES
        for path in modules(root, package)
        for lines, name in function_lengths(path)
        if lines > MOST_FUNCTION_LINES
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_95_of_100_functions_are_short(package, capsys):
    paths = modules(ROOT, package)
    lengths = sorted(lines for path in paths for lines, _ in function_lengths(path))
    lines = sorted(len(path.read_text().splitlines()) for path in paths)
    if not lengths:
        return
    p95 = lengths[int(0.95 * (len(lengths) - 1))]
    with capsys.disabled():
        print(
            f"\n{package}: {len(paths)} modules, median {lines[len(lines) // 2]}, longest {lines[-1]} lines; "
            f"{len(lengths)} functions, p95 {p95}, longest {lengths[-1]} lines"
        )
    assert p95 <= USUAL_FUNCTION_LINES


def test_no_function_is_longer_than_a_screen_and_a_half():
    assert too_long(ROOT) == []


def test_a_long_module_has_its_reason():
    long = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for package in PACKAGES
        for path in modules(ROOT, package)
        if len(path.read_text().splitlines()) > MODULE_LINES
    }
    assert set(long) == set(LONG_MODULES), long


def test_a_planted_long_function_is_found(tmp_path):
    body = "\n".join("    x = 1" for _ in range(MOST_FUNCTION_LINES))
    (tmp_path / "store" / "runs").mkdir(parents=True)
    (tmp_path / "store" / "runs" / "lifecycle.py").write_text(f"def claim():\n{body}\n")
    assert too_long(tmp_path) == ["store/runs/lifecycle.py claim: 81 lines"]
