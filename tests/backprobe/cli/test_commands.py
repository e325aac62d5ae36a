"""The command line, as a user meets it: through a process, a fresh one where its start is the subject."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backprobe.rules import RULES
from tests.support import forks

CLEAN = (
    "import torch\nw = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()\nprint('out', w.grad.sum().item())\n"
)
FAULTY = (
    "import torch\nw = torch.ones(2, requires_grad=True).to(torch.float64)\n(w * 2).sum().backward()\nprint(w.grad)\n"
)


def backprobe(*args: str, cwd: Path, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "backprobe", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **more,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "faulty.py").write_text(FAULTY)
    return tmp_path


@pytest.mark.parametrize(
    "command", [["--version"], ["rules"], ["explain", "BP101"], ["--help"], ["rules", "--format", "json"]]
)
def test_what_needs_no_run_loads_neither_torch_nor_a_server_library(command, tmp_path) -> None:
    program = (
        "import sys\nfrom backprobe.cli import main\ntry:\n    code = main(sys.argv[1:])\nexcept SystemExit as end:\n    code = end.code\n"
        "heavy = {'torch', 'numpy', 'flask', 'celery', 'sqlalchemy', 'service', 'workers', 'store'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("sys.modules['torch'] = None", "PyTorch is not installed in this Python"),
        ("import torch\ndel torch._C._autograd.SavedTensor.data", "is too old for Backprobe"),
    ],
    ids=["none", "too old"],
)
def test_a_run_without_a_torch_that_serves_is_refused_and_says_what_to_install(before, said, folder) -> None:
    program = f"import sys\nfrom backprobe.cli import main\n{before}\nsys.exit(main(['run', 'clean.py']))\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_package_leaves_torch_unloaded(tmp_path) -> None:
    program = (
        "import backprobe, sys; assert 'torch' not in sys.modules; backprobe.judge; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_the_public_surface_is_pinned() -> None:
    import backprobe

    assert sorted(backprobe.__all__) == [
        "Finding",
        "Judgement",
        "Record",
        "__version__",
        "check",
        "judge",
        "load",
        "load_ipython_extension",
        "run",
        "watch",
    ]
    assert all(getattr(backprobe, name) is not None for name in backprobe.__all__ if name not in ("run", "watch"))


@pytest.mark.usefixtures("fresh_python")
def test_a_clean_script_owns_stdout_and_exits_with_0(folder) -> None:
    done = backprobe("run", "clean.py", cwd=folder)
    assert done.stdout == "out 4.0\n"
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"{len(RULES)} rules, 1 tensor, 1 backward call, 0 findings\n")
    assert "\x1b" not in done.stderr


def test_a_finding_exits_with_1_and_shows_the_line(folder) -> None:
    done = forks.backprobe("run", "faulty.py", cwd=folder)
    assert done.returncode == 1
    assert done.stdout == "None\n"
    assert "warning[BP101] non-leaf-grad-read" in done.stderr
    assert "--> faulty.py:2:5" in done.stderr


@pytest.mark.parametrize(
    ("option", "code"), [(["--exit-zero"], 0), (["--fail-on", "error"], 0), (["--fail-on", "note"], 1)]
)
def test_what_fails_can_be_chosen(option, code, folder) -> None:
    assert forks.backprobe("run", *option, "faulty.py", cwd=folder).returncode == code


def test_options_behind_the_script_are_its_own(folder) -> None:
    (folder / "args.py").write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    done = forks.backprobe("run", "args.py", "--tier", "x", "--", "-v", cwd=folder)
    assert done.stdout == "['--tier', 'x', '--', '-v'] __main__\n"
    assert done.returncode == 0, done.stderr


def test_json_goes_to_a_file_and_leaves_both_streams_alone(folder) -> None:
    done = forks.backprobe("run", "--format", "json", "--output", "out.json", "faulty.py", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "None\n")
    assert "tensors" not in done.stderr
    report = json.loads((folder / "out.json").read_text())
    assert [finding["rule"]["code"] for finding in report["findings"]] == ["BP101"]
    assert report["findings"][0]["schema"] == "backprobe.finding/1"


def test_a_saved_record_shows_the_same_without_torch(folder) -> None:
    first = forks.backprobe("run", "--save", "run.bprec", "faulty.py", cwd=folder)
    again = backprobe("show", "run.bprec", cwd=folder)
    assert again.returncode == first.returncode == 1
    assert again.stdout.strip() in first.stderr
    drawn = backprobe("show", "--format", "svg", "run.bprec", cwd=folder)
    assert drawn.stdout.startswith("<svg ")
    concise = backprobe("show", "--format", "concise", "--exit-zero", "run.bprec", cwd=folder)
    assert concise.stdout.startswith("faulty.py:2:5: non-leaf-grad-read BP101 warning: `w` is not a leaf")
    assert concise.returncode == 0


@pytest.mark.usefixtures("fresh_python")
def test_a_script_that_raises_shows_its_own_traceback_and_exits_with_4(folder) -> None:
    (folder / "boom.py").write_text("import torch\nw = torch.ones(2, requires_grad=True)\nraise ValueError('mine')\n")
    plain = subprocess.run([sys.executable, "boom.py"], cwd=folder, capture_output=True, text=True, check=False)
    done = backprobe("run", "boom.py", cwd=folder)
    assert done.returncode == 4
    assert plain.stderr.replace(f'"{folder}/', '"') in done.stderr.replace(f'"{folder}/', '"')
    assert "1 tensor, 0 backward calls, 0 findings" in done.stderr


@pytest.mark.parametrize(
    ("text", "code"), [("raise SystemExit(3)\n", 4), ("import sys\nsys.exit()\n", 0), ("def f(:\n", 4)]
)
def test_how_a_script_ends_is_told_from_what_was_found(text, code, folder) -> None:
    (folder / "end.py").write_text(text)
    done = forks.backprobe("run", "end.py", cwd=folder)
    assert done.returncode == code, done.stderr
    assert ("the program's exit code is 3" in done.stderr) == ("SystemExit(3)" in text)


def test_long_tables_are_shown_on_request(folder) -> None:
    (folder / "long.py").write_text(
        "import torch\n" + "".join(f"t{n} = torch.ones(2, requires_grad=True)\n" for n in range(40))
    )
    short = forks.backprobe("run", "--save", "long.bprec", "long.py", cwd=folder)
    assert "t20" not in short.stderr
    assert "`--tables` shows them" in short.stderr
    assert "t20" in backprobe("show", "--tables", "long.bprec", cwd=folder).stdout


@pytest.mark.usefixtures("fresh_python")
def test_an_interrupt_exits_with_130(folder) -> None:
    (folder / "slow.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "backprobe", "run", "slow.py"]
    # a shell that starts the tests in the background has them ignore the signal, and children inherit that
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, heard)
    with child:
        assert child.stdout is not None
        # what torch warns of while it loads goes to stderr; the program's first line means that it runs
        begun = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _out, err = child.communicate(timeout=60)
    assert begun == "begun\n"
    assert child.returncode == 130
    assert "KeyboardInterrupt" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "claen.py"], "there is no file `claen.py`; did you mean `clean.py`?"),
        (["run", "."], "`.` is a folder"),
        (["run", "--teir", "full", "clean.py"], "unknown option `--teir`; did you mean `--tier`?"),
        (["run", "--tier", "deepest", "clean.py"], "invalid choice: 'deepest'"),
        (["run"], "required: SCRIPT"),
        (["run", "--format", "json", "clean.py"], "--format json wants --output FILE: the script owns stdout"),
        (["run", "--output", "no/where.txt", "clean.py"], "there is no folder `no` to write `where.txt` into"),
        (["show", "none.bprec"], "cannot read the record `none.bprec`: No such file or directory"),
        (["show", "clean.py"], "is not a record that can be read"),
        (["explain", "non-leaf-grad-reed"], "Did you mean `non-leaf-grad-read`?"),
        (["explain", "BP999"], "there is no rule `BP999`"),
        (["exlpain", "BP101"], "there is no command `exlpain`; did you mean `explain`?"),
        (["rules", "--fromat", "json"], "did you mean `--format`?"),
        ([], "required: COMMAND"),
    ],
)
def test_a_wrong_command_line_is_2_names_what_is_near_and_runs_nothing(args, said, folder) -> None:
    done = backprobe(*args, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_colour_follows_the_option_then_the_environment(folder) -> None:
    assert "\x1b[" in forks.backprobe("run", "--color", "always", "clean.py", cwd=folder).stderr
    forced = forks.backprobe("run", "clean.py", cwd=folder, environment={"FORCE_COLOR": "1"})
    assert "\x1b[" in forced.stderr
    never = forks.backprobe("run", "--color", "never", "clean.py", cwd=folder, environment={"FORCE_COLOR": "1"})
    assert "\x1b[" not in never.stderr
    refused = forks.backprobe("run", "clean.py", cwd=folder, environment={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "\x1b[" not in refused.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path) -> None:
    command = f"'{sys.executable}' -m backprobe explain BP701 | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("BP701 parameters-not-in-optimizer")
    assert done.stderr == ""


def test_the_help_names_the_plug_ins(tmp_path) -> None:
    shown = backprobe("--help", cwd=tmp_path).stdout
    for name in ("serve", "worker", "reaper", "migrate"):
        assert re.search(rf"\b{name}\b", shown)


def test_a_script_may_close_its_streams(folder) -> None:
    (folder / "closes.py").write_text("import sys\nsys.stderr.close()\nsys.stdout.close()\n")
    done = forks.backprobe("run", "--output", "report.txt", "closes.py", cwd=folder)
    assert done.returncode == 0
    assert "0 findings" in (folder / "report.txt").read_text()


def test_a_script_that_closes_its_streams_is_judged_all_the_same(folder) -> None:
    closing = "import os, sys\nsys.stdout.close()\nsys.stderr.close()\n"
    (folder / "closing.py").write_text("import torch\nx = torch.ones(2, requires_grad=True)\n" + closing)
    done = forks.backprobe("run", "closing.py", cwd=folder)
    assert done.returncode == 0
    assert "1 tensor" in done.stderr


@pytest.mark.parametrize("option", ["--output", "--save"])
def test_a_full_disk_is_ours_and_said_after_the_script_has_run(option, folder) -> None:
    done = forks.backprobe("run", option, "/dev/full", "clean.py", cwd=folder)
    assert done.returncode == 3
    assert "`/dev/full` was not written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_run(folder) -> None:
    done = backprobe("run", "--output", "/proc/nothing", "clean.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written" in done.stderr


COUNTED = """
import sys
events = 0
def seen(frame, event, argument):
    global events
    events += 1
sys.setprofile(seen)
{program}
sys.setprofile(None)
print(events, file=sys.stderr)
"""


@pytest.mark.usefixtures("fresh_python")
def test_starting_costs_little_more_than_python_itself(tmp_path) -> None:
    """A budget of 200 ms on an idle core, told in calls and returns, which are the same number on any machine."""

    def calls(program: str, *arguments: str) -> int:
        command = [sys.executable, "-c", COUNTED.replace("{program}", program), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return int(done.stderr.splitlines()[-1])

    bare = calls("import argparse, json, ast, importlib.metadata")
    ours = "from backprobe.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass"
    for command, most in ((["--version"], 2), (["rules"], 8), (["explain", "BP101"], 8)):
        assert calls(ours, *command) < most * bare, command
