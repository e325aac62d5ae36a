"""Every statement and expression of Python does under capture what it does without: output, traceback, exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.backprobe.capture.in_process import recorded
from tests.support.forks import run

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs" / "syntax").glob("*.py"))
NEW = sorted((HERE / "programs" / "syntax" / "python312").glob("*.py")) if sys.version_info >= (3, 12) else []

ODD: dict[str, bytes] = {
    "latin.py": "# -*- coding: latin-1 -*-\nimport torch\nn\xe4me = torch.ones(1, requires_grad=True)\n"
    "print('\xe4\xf6', (n\xe4me * 2).sum(), open(__file__, 'rb').read(9))\nn\xe4me @ torch.ones(3)\n".encode("latin-1"),
    "cookie_on_line_two.py": b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nprint('\x80', len('\x80'))\nmissing\n",
    "bom.py": b"\xef\xbb\xbfimport torch\nx = torch.ones(2)\nprint(x @ torch.ones(3))\n",
    "crlf.py": b"import torch\r\nx = (torch.ones(2)\r\n    * 2)\r\ntext = '''a\r\nb'''\r\nprint(x, repr(text))\r\nx @ torch.ones(3)\r\n",
    "old_mac.py": b"import torch\rx = torch.ones(2)\rprint(x)\rx @ torch.ones(3)\r",
    "form_feed.py": b"import torch\n\x0c\ndef f():\n\x0c    return torch.ones(2) @ torch.ones(3)\n\x0c\nprint(1)\nf()\n",
    "no_newline.py": b"import torch\nx = torch.ones(1)\nprint(x); x.nope",
    "tabs.py": b"import torch\nif 1:\n\tx = torch.ones(2)\n\tif x is not None:\n\t\tprint(x @ torch.ones(3))\n",
    "empty.py": b"",
    "only_a_comment.py": b"# nothing",
    "only_a_docstring.py": b'"""nothing"""',
    "wide.py": "import torch\n\u53d8\u91cf = torch.ones(2); \u03c0 = '\U0001f600'; print(\u53d8\u91cf @ torch.ones(3))\n".encode(),
    "very_long_line.py": b"import torch\nx = " + b" + ".join([b"torch.ones(1)"] * 600) + b"\nprint(x)\nx.nope\n",
    "many_lines.py": b"import torch\n" + b"x = torch.ones(1)\n" * 1500 + b"x.nope\n",
    "null_byte.py": b"x = 1\0\n",
    "bad_cookie.py": b"# coding: nonsense\nx = 1\n",
    "not_utf8.py": b"x = '\xff'\n",
    "bad_syntax.py": b"import torch\ndef f(:\n    pass\n",
    "bad_indent.py": b"if 1:\nx = 1\n",
    "return_outside.py": b"x = 1\nreturn x\n",
    "late_future.py": b"x = 1\nfrom __future__ import annotations\n",
    "docstring_and_future.py": b'"""doc"""\nfrom __future__ import annotations\nimport torch\nx: Undefined = torch.ones(1)\nprint(__doc__, __annotations__)\n',
    "warns_at_compile_time.py": b"import torch\nx = torch.ones(1)\nif x is 1: pass\nprint('\\d', 'y')\nassert (x, 'always true')\n",
    "barry.py": b"from __future__ import barry_as_FLUFL\nprint(1 <> 2)\n",
    "deep_brackets.py": b"x = " + b"(" * 150 + b"1" + b")" * 150 + b"\nprint(x)\n",
    "deep_expression.py": b"x = 1\ny = " + b"-" * 900 + b"x\nprint(y)\n",
    "many_blocks.py": b"\n".join(b" " * i + b"for x%d in [1]:" % i for i in range(19))
    + b"\n"
    + b" " * 20
    + b"print(x18)\n",
}


def both(jobs: list[Path]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Each program plain and captured, in forks of one warm process."""
    found = run([(mode, path, ["arg"]) for path in jobs for mode in ("plain", "captured")])
    return {path.name: (found[2 * i], found[2 * i + 1]) for i, path in enumerate(jobs)}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("odd")
    for name, data in ODD.items():
        (folder / name).write_bytes(data)
    return both([*PROGRAMS, *NEW, *(folder / name for name in ODD)])


@pytest.mark.parametrize("name", [path.name for path in (*PROGRAMS, *NEW)] + list(ODD))
def test_it_is_the_same_under_capture(name: str, ran: Any) -> None:
    plain, captured = ran[name]
    assert captured["out"] == plain["out"]
    assert captured["err"] == plain["err"]
    assert captured["code"] == plain["code"]
    assert captured.get("own_errors") == 0, captured.get("own_error")


def test_the_table_sees_a_program_that_can_tell(tmp_path: Path) -> None:
    program = tmp_path / "tells.py"
    program.write_text("import sys\nprint(len(sys._getframe().f_code.co_names))\n")
    plain, captured = both([program])["tells.py"]
    assert plain["out"] != captured["out"], "the code object itself is another one: a stated deviation"


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.skipif(os.name != "posix", reason="a command of a POSIX shell")
def test_a_script_is_run_from_another_folder(tmp_path: Path) -> None:
    script = os.path.relpath(HERE / "programs" / "syntax" / "main_guard.py", tmp_path)
    plain = subprocess.run(
        [sys.executable, script, "x"], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    captured = subprocess.run(
        [sys.executable, "-m", "backprobe", "run", "--exit-zero", script, "x"],
        check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert captured.stdout == plain.stdout
    assert captured.stderr.startswith(plain.stderr)


def test_no_statement_reads_or_binds_a_tap() -> None:
    record = recorded(
        """
        import contextlib, torch
        x = torch.ones(2, requires_grad=True)
        for part in [x * 1, x.mul(2)]:
            y = part.sum()
        with contextlib.nullcontext(x.mul(3)) as z:
            z = z + 1
        match [x, x.mul(4)]:
            case [first, second]:
                w = first
        """
    )
    names = {name for row in record.sites for name in (*row.reads, *row.targets)}
    assert {"x", "part", "z", "first", "x.mul"} <= names
    assert [name for name in names if "__bp" in name] == []
