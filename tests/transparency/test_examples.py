"""Public training scripts that nobody here wrote: under `backprobe run` each does what it does under `python`.

`examples.py` says which and how; without a checkout of pytorch/examples they are skipped by name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.transparency.examples import SCRIPTS, Ran, Script, differences, run_both


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_public_script_does_what_it_does_plain(script: Script, tmp_path: Path, require) -> None:
    require("examples")
    both = run_both(Path(os.environ["BACKPROBE_EXAMPLES"]), script, tmp_path)
    assert both.plain.code == 0, both.plain.err
    assert both.plain.out.count("\n") > 2
    assert differences(both) == []
    assert "Traceback" not in both.report
    assert ", 0 backward calls" not in both.report


def test_a_difference_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "checkout" / "told").mkdir(parents=True)
    text = "import sys\nprint('traced by', len([n for n in vars(__builtins__) if n.startswith('__bp')]))\n"
    (tmp_path / "checkout" / "told" / "main.py").write_text(text + "open('left', 'w').write('1' * len(sys.argv[0]))\n")
    script = Script(name="told", path="told/main.py")
    (tmp_path / "work").mkdir()
    both = run_both(tmp_path / "checkout", script, tmp_path / "work")
    assert both.plain == Ran(0, "traced by 0\n", "")
    assert len(differences(both)) == 1
    assert differences(both)[0].startswith("out:")
