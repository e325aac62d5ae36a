"""The templates of CI services in the repository: they parse, and what they run is taken by the command line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from backprobe.cli.parser import parse

ROOT = Path(__file__).parents[3]


@pytest.fixture
def stand_in(tmp_path):
    """A `backprobe` and a `python` that write down their arguments."""
    for name in ("backprobe", "python"):
        path = tmp_path / name
        path.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" > "{tmp_path}/{name}.arguments"\n')
        path.chmod(0o755)
    return tmp_path


def as_github_runs(folder, script):
    """The command that GitHub makes of `shell: bash` and a step's script, which it writes to a file."""
    (folder / "step.sh").write_text(script)
    return "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(folder / "step.sh")


def ran(folder, script, environment):
    done = subprocess.run(
        as_github_runs(folder, script), env={"PATH": f"{folder}:{os.environ['PATH']}", **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return (folder / "backprobe.arguments").read_text().splitlines()


@pytest.mark.parametrize(
    ("url", "paths"),
    [
        ("", ""),
        ("https://b.example", "jobs/a.py jobs"),
        ("", "jobs/a.py\njobs/b.py\n"),
        ("", "\n  jobs/a.py\r\n\n  jobs/[ab]*.py @list\n"),
    ],
)
def test_the_action_runs_an_audit(stand_in, url, paths):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    given = {name: told["default"] for name, told in action["inputs"].items()} | {
        "url": url,
        "paths": paths,
        "baseline": "aud_1",
        "baseline-commit": "" if url else "HEAD~1",
        "changed-since": "" if url else "HEAD~2",
    }
    environment = {name: given[text.split("inputs.")[1].split()[0]] for name, text in step["env"].items()}
    words = ran(stand_in, step["run"], environment)
    args = parse(words)
    assert (args.baseline_commit, args.changed_since) == ((None, None) if url else ("HEAD~1", "HEAD~2"))
    assert (args.command, args.local, args.url, args.paths) == ("audit", not url, url or None, paths.split())
    assert (args.formats, [str(path) for path in args.files]) == (
        ["sarif", "html", "github"],
        ["backprobe.sarif", "backprobe.html"],
    )
    assert (str(args.policy), args.baseline) == ("policy.toml", "aud_1")


@pytest.mark.parametrize(
    ("package", "wanted"), [("", "/actions/backprobe[client,torch]"), ("backprobe==1", "backprobe==1")]
)
def test_the_action_installs_its_own_checkout_unless_told_otherwise(stand_in, package, wanted):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["inputs"]["package"]["default"] == ""
    step = action["runs"]["steps"][0]
    assert step["env"]["ACTION_CHECKOUT"] == "${{ github.action_path }}"
    subprocess.run(
        as_github_runs(stand_in, step["run"]), check=True, timeout=60,
        env={"PATH": f"{stand_in}:{os.environ['PATH']}", "PACKAGE": package, "ACTION_CHECKOUT": "/actions/backprobe"},
    )  # fmt: skip
    assert (stand_in / "python.arguments").read_text().splitlines() == ["-m", "pip", "install", "--quiet", wanted]


def test_the_gitlab_job_wants_to_know_what_to_install(stand_in):
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".backprobe"]
    script = "\n".join(job["before_script"])
    path = {"PATH": f"{stand_in}:{os.environ['PATH']}"}
    refused = subprocess.run(["bash", "-ec", script], env=path | job["variables"], capture_output=True, text=True, check=False)  # fmt: skip
    assert refused.returncode != 0
    assert "BACKPROBE_PACKAGE: set it to what pip installs" in refused.stderr
    assert not (stand_in / "python.arguments").exists()
    named = "backprobe[client,torch] @ git+https://b.example/backprobe.git"
    subprocess.run(["bash", "-ec", script], env=path | {"BACKPROBE_PACKAGE": named}, check=True)
    assert (stand_in / "python.arguments").read_text().splitlines()[-1] == named


@pytest.mark.parametrize("url", ["", "https://b.example"])
def test_the_gitlab_job_runs_an_audit(stand_in, url):
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".backprobe"]
    args = parse(ran(stand_in, "\n".join(job["script"]), job["variables"] | ({"BACKPROBE_URL": url} if url else {})))
    assert (args.local, args.url, args.formats) == (not url, url or None, ["junit", "html", "text"])
    assert job["artifacts"]["reports"]["junit"] == str(args.files[0])


def test_the_hook_judges_records_and_runs_no_training_code():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    args = parse([*hook["entry"].split()[1:], "a.bprec", "b.bprec"])
    assert (args.local, args.paths, hook["files"]) == (True, ["a.bprec", "b.bprec"], r"\.bprec$")


def test_the_hook_takes_a_policy_before_the_records():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    args = parse([*hook["entry"].split()[1:], "--policy", "records.toml", "a.bprec"])
    assert (str(args.policy), args.paths) == ("records.toml", ["a.bprec"])
