"""`backprobe audit` against a real server: one audit, its policy, its findings, the same one again, and Ctrl-C."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest

from backprobe.cli import main
from backprobe.cli.audit import remote
from backprobe.client import requests
from store.audits import judging


@pytest.fixture
def jobs(tmp_path, monkeypatch, samples):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remote, "_WAIT_SECONDS", 1)
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(requests, "LONGEST_PAUSE_SECONDS", 0.0)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.py").write_text(samples.TUTORIAL + "import words\n")
    (tmp_path / "jobs" / "words.py").write_text("")
    (tmp_path / "jobs" / "list.txt").write_text("a b c")
    (tmp_path / "policy.toml").write_text(
        '[policy]\nname = "pre-merge"\nentries = ["jobs/train.py"]\nfail = ["BP1"]\n'
        'limits = { wall_seconds = 30 }\n[run."jobs/train.py"]\nfiles = ["jobs/*.txt"]\narguments = ["x"]\nseed = 0\n'
    )
    return tmp_path


def end(site, samples, audits=1):
    """What workers and the reaper do, until so many audits are judged."""
    while len(site.client.get("/v1/audits?status=judged").json["items"]) < audits:
        newest_first = site.client.get("/v1/runs?status=queued").json["items"]
        for row in reversed(newest_first):  # the oldest is claimed first
            site.finish(row["id"], samples.tutorial())
        judging.settle(site.context.database)


def test_programs_are_audited_as_one_and_a_retried_job_finds_the_same(served, jobs, samples, capsys):
    site, url = served
    ending = threading.Thread(target=end, args=(site, samples))
    ending.start()
    command = ["audit", "--policy", "policy.toml", "--url", url, "--label", "pr=12"]
    assert main([*command, "--format", "json", "--output", "out.json", "--format", "github"]) == 1
    ending.join()
    told = json.loads((jobs / "out.json").read_text())
    (item,) = told["items"]
    assert (item["name"], item["verdict"], item["cells"][0]["rule"]) == ("jobs/train.py", "fail", "non-leaf-grad-read")
    assert item["findings"][0]["rule"]["code"] == "BP101"
    assert item["rules_judged"] > 10
    annotations = capsys.readouterr().out.splitlines()
    assert annotations[0].startswith("::error file=")
    assert annotations[-1] == f"backprobe: 1 error; pre-merge failed: 1 fail; 1 finding; audit {told['audit']}"
    run = site.client.get(f"/v1/runs/{item['run']}").json
    files = site.client.get(f"/v1/snippets/{run['snippet']}").json["files"]
    assert [file["path"] for file in files] == ["jobs/list.txt", "jobs/train.py", "jobs/words.py"]
    assert (run["arguments"], run["entry"], run["limits"]["wall_seconds"], run["seed"]) == (
        ["x"],
        "jobs/train.py",
        30,
        0,
    )
    audits = site.client.get("/v1/audits").json["items"]
    assert [(audit["name"], audit["labels"]["pr"]) for audit in audits] == [("pre-merge", "12")]
    assert main(command) == 1
    assert f"pre-merge failed: 1 fail; 1 finding\n{url}/v1/audits/{audits[0]['id']}" in capsys.readouterr().out
    assert len(site.client.get("/v1/audits").json["items"]) == 1
    (policy,) = site.client.get("/v1/policies").json["items"]
    assert (policy["name"], policy["fail"], policy["revision"]) == ("pre-merge", ["BP1"], 1)


def test_a_policy_that_changed_is_its_next_revision(served, jobs, samples):
    site, url = served
    site.client.post("/v1/policies", json={"name": "pre-merge"})
    ending = threading.Thread(target=end, args=(site, samples))
    ending.start()
    assert main(["audit", "--policy", "policy.toml", "--url", url]) == 1
    ending.join()
    (policy,) = site.client.get("/v1/policies").json["items"]
    assert (policy["fail"], policy["revision"]) == (["BP1"], 2)


def test_the_audit_of_the_nearest_commit_is_the_baseline(served, jobs, samples, capsys):
    site, url = served

    def commit(text):
        (jobs / "note.txt").write_text(text)
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        for words in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", text]):
            subprocess.run(["git", *words], cwd=jobs, check=True)

    command = ["audit", "--policy", "policy.toml", "--url", url]
    commit("first")
    ending = threading.Thread(target=end, args=(site, samples))
    ending.start()
    assert main(command) == 1
    ending.join()
    (first,) = site.client.get("/v1/audits").json["items"]
    commit("second, which nobody audits")
    commit("third")
    ending = threading.Thread(target=end, args=(site, samples, 2))
    ending.start()
    assert main([*command, "--baseline-commit", "HEAD~1"]) == 1
    ending.join()
    said = capsys.readouterr()
    assert f"the baseline is audit {first['id']} of commit" in said.err
    assert "1 finding (0 new, 1 known, 0 gone)" in said.out
    assert "non-leaf-grad-read BP101 warning (known): " in said.out
    assert main([*command, "--baseline-commit", "no-such"]) == 2
    (jobs / "policy.toml").write_text('[policy]\nname = "other"\nentries = ["jobs/train.py"]\n')
    assert main([*command, "--baseline-commit", "HEAD"]) == 2
    assert "no audit called `other` is of HEAD, nor of the 2 commits before it" in capsys.readouterr().err


def test_ctrl_c_cancels_the_audit(served, jobs, monkeypatch, capsys):
    site, url = served

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("backprobe.cli.audit.command._Progress.__call__", pressed)
    assert main(["audit", "jobs/train.py", "--url", url]) == 130
    (audit,) = site.client.get("/v1/audits").json["items"]
    assert audit["status"] == "canceled"
    assert audit["id"] in capsys.readouterr().err


def test_a_job_that_is_retried_after_ctrl_c_begins_anew_and_its_own_retry_finds_that(
    served, jobs, samples, monkeypatch, capsys
):
    site, url = served
    with monkeypatch.context() as pressing:

        def pressed(*_):
            raise KeyboardInterrupt

        pressing.setattr("backprobe.cli.audit.command._Progress.__call__", pressed)
        assert main(["audit", "--policy", "policy.toml", "--url", url]) == 130
    ending = threading.Thread(target=end, args=(site, samples))
    ending.start()
    assert main(["audit", "--policy", "policy.toml", "--url", url]) == 1
    ending.join()
    assert main(["audit", "--policy", "policy.toml", "--url", url]) == 1
    told = site.client.get("/v1/audits").json["items"]
    assert [audit["status"] for audit in told] == ["judged", "canceled"]


def test_a_program_that_raised_is_told_with_its_exception(served, jobs, samples, capsys):
    from store.runs.model import RunError

    site, url = served
    error = RunError(whose="program", code="raised", type="ValueError", message="no rows\nat all", path="a.py", line=3)

    def end_run():
        while not (queued := site.client.get("/v1/runs?status=queued").json["items"]):
            pass
        site.finish(queued[0]["id"], samples.tutorial(), status="failed", exit_code=1, error=error)
        judging.settle(site.context.database)

    ending = threading.Thread(target=end_run)
    ending.start()
    assert main(["audit", "jobs/train.py", "--url", url]) == 1
    ending.join()
    assert "error    jobs/train.py: ValueError: no rows (a.py:3)" in capsys.readouterr().out


def test_what_cannot_be_sent_is_refused_before_anything_is(served, jobs, capsys):
    site, url = served
    (jobs / "jobs" / "list.txt").write_bytes(b"\xff\xfe")
    assert main(["audit", "--policy", "policy.toml", "--url", url]) == 2
    assert "`--local` runs it here" in capsys.readouterr().err
    assert site.client.get("/v1/audits").json["items"] == []
    assert main(["audit", "jobs/train.py", "--url", "http://127.0.0.1:9", "--baseline", "x"]) == 2
    assert main(["audit", "jobs/train.py", "--url", "http://127.0.0.1:9"]) == 3


@pytest.mark.parametrize("how", ["data", "module", "script", "pattern"])
def test_what_leads_out_of_the_project_is_not_sent(served, jobs, tmp_path_factory, capsys, how):
    """A change of the project must not fetch what the machine that audits it holds."""
    site, url = served
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.py"
    secret.write_text("key = 'zebra'\n")
    if how == "pattern":
        policy = jobs / "policy.toml"
        policy.write_text(policy.read_text().replace("jobs/*.txt", f"../{secret.parent.name}/*.py"))
    else:
        link = jobs / "jobs" / {"data": "link.txt", "module": "words.py", "script": "train.py"}[how]
        link.unlink(missing_ok=True)
        link.symlink_to(secret)
    assert main(["audit", "--policy", "policy.toml", "--url", url]) == 2
    assert "leads out of the project, and is not sent" in capsys.readouterr().err
    assert site.client.get("/v1/audits").json["items"] == site.client.get("/v1/runs").json["items"] == []


def test_a_link_within_the_project_is_followed(served, jobs, samples):
    site, url = served
    (jobs / "words_of_all.py").write_text("x = 1\n")
    (jobs / "jobs" / "words.py").unlink()
    (jobs / "jobs" / "words.py").symlink_to("../words_of_all.py")
    ending = threading.Thread(target=end, args=(site, samples))
    ending.start()
    assert main(["audit", "--policy", "policy.toml", "--url", url]) == 1
    ending.join()
    (run,) = site.client.get("/v1/runs").json["items"]
    sent = site.client.get(f"/v1/snippets/{run['snippet']}/files/jobs/words.py")
    assert sent.text == "x = 1\n"
