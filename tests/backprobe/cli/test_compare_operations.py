"""`backprobe compare` of two record files: the first operation whose structure differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from backprobe.cli import main
from backprobe.record import dumps
from tests.backprobe.capture.in_process import recorded

PROGRAM = """\
import torch
{name} = torch.ones(2, 3, requires_grad=True)
for _ in range(2):
    h = {operation}
    h.sum().backward()
"""


@pytest.mark.parametrize(
    ("name", "operation", "said"),
    [
        ("w", "torch.relu(w * 2)", "all of one structure"),
        ("weight", "torch.nn.functional.relu(weight * 2)", "all of one structure"),
        ("w", "torch.sigmoid(w * 2)", "line 4 of snippet.py, `torch.sigmoid` gives [2, 3] float32 in B"),
        ("w", "torch.relu(w[:1] * 2)", "line 4 of snippet.py, `[]` of ([2, 3] float32) gives [1, 3] float32 in B"),
        ("w", "torch.relu(w.double() * 2)", "`w.double` of ([2, 3] float32) gives [2, 3] float64 in B"),
    ],
)
def test_the_first_operation_of_another_structure_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, operation: str, said: str
) -> None:
    (tmp_path / "a.bprec").write_bytes(dumps(recorded(PROGRAM.format(name="w", operation="torch.relu(w * 2)"))))
    other = PROGRAM.format(name=name, operation=operation)
    (tmp_path / "b.bprec").write_bytes(dumps(recorded(other)))
    assert main(["compare", str(tmp_path / "a.bprec"), str(tmp_path / "b.bprec")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("operations: ")]
    assert line.endswith(said)
