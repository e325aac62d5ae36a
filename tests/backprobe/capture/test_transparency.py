"""A program cannot tell that it is captured: the same output, traceback text, warnings, exit code, numbers to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.corpus.cases import load_set
from tests.support.forks import run

HERE = Path(__file__).parent
RECURSION = HERE / "programs" / "recursion.py"
PROGRAMS = sorted((HERE / "programs").glob("*.py"))


def pairs(paths: list[Path]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Each program plain and captured."""
    jobs = [(mode, str(path), ["one", "--two"]) for path in paths for mode in ("plain", "captured")]
    results = run(jobs)
    return {str(path): (results[2 * i], results[2 * i + 1]) for i, path in enumerate(paths)}


def own_stderr(err: str) -> str:
    """Standard error without the profiler's own log lines, which carry a process id."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("USDT:"))


@pytest.fixture(scope="module")
def ran() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    return pairs(PROGRAMS)


@pytest.mark.parametrize("path", [path for path in PROGRAMS if path != RECURSION], ids=lambda path: path.stem)
def test_a_captured_program_does_what_the_plain_one_does(path: Path, ran: Any) -> None:
    plain, captured = ({**row, "err": own_stderr(row["err"])} for row in ran[str(path)])
    assert {key: captured[key] for key in plain} == plain, "a start that died shows its code beside what it printed"
    assert captured.get("own_errors") == 0, captured.get("own_error")


def test_an_endless_recursion_ends_as_it_does_plain_but_for_the_count_of_its_frames(ran: Any) -> None:
    plain, captured = ran[str(RECURSION)]
    assert (captured["code"], captured["out"], captured["own_errors"]) == (plain["code"], plain["out"], 0)
    ours, theirs = captured["err"].splitlines(), plain["err"].splitlines()
    assert ours[:12] == theirs[:12]
    assert ours[-1].startswith("RecursionError: maximum recursion depth exceeded")
    assert "backprobe/capture/torch_access/fence" not in captured["err"]


@pytest.mark.usefixtures("sweep")
def test_every_program_of_the_corpus_ends_as_it_does_plain(tmp_path: Path) -> None:
    corpus = load_set("public")
    texts = {f"{case.id}_faulty": case.bad for case in corpus.cases}
    texts |= {f"{case.id}_repaired": case.good for case in corpus.cases}
    texts |= {program.name: program.text for program in corpus.correct}
    assert len(texts) == 129
    paths = [tmp_path / f"{name}.py" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    for path, (plain, captured) in pairs(paths).items():
        assert captured.get("own_errors") == 0, (path, captured)
        assert {key: captured[key] for key in plain} == plain, path
