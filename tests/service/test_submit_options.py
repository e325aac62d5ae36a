"""`submit --wait` alone, `--queue`, `--project`, `--format sarif`; `open`: against a real server."""

from __future__ import annotations

import json
import threading

import pytest


@pytest.fixture
def folder(served, tmp_path, monkeypatch, samples):
    """The working directory, with a program, and the service in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKPROBE_URL", served[1])
    (tmp_path / "train.py").write_text(samples.TUTORIAL)
    return tmp_path


def command(capsys, *words):
    from backprobe.cli import main

    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def finished(served, samples):
    """What ends the run that the test submits, as soon as it is queued."""
    site, _ = served
    over = threading.Event()

    def work():
        while not over.wait(0.02):
            if queued := site.app.test_client().get("/v1/runs?status=queued").json["items"]:
                site.finish(queued[0]["id"], samples.tutorial())
                return

    worker = threading.Thread(target=work)
    worker.start()
    yield
    over.set()
    worker.join()


def test_a_bare_wait_takes_the_program_behind_it_for_the_program(folder, finished, capsys):
    code, out, _ = command(capsys, "submit", "--wait", "train.py")
    assert code == 1
    assert "BP101" in out


def test_a_bare_wait_at_the_end_gives_sarif_of_the_ended_run(folder, finished, capsys):
    code, out, _ = command(capsys, "submit", "train.py", "--format", "sarif", "--wait")
    assert code == 1
    told = json.loads(out)
    assert told["version"] == "2.1.0"
    assert [result["ruleId"] for result in told["runs"][0]["results"]] == ["BP101"]


def test_sarif_without_waiting_is_refused_before_anything_is_sent(served, folder, capsys):
    code, out, err = command(capsys, "submit", "train.py", "--format", "sarif")
    assert (code, out) == (2, "")
    assert "needs --wait" in err
    assert served[0].app.test_client().get("/v1/runs").json["items"] == []


def test_queue_and_project_go_along(served, folder, capsys):
    projects = served[0].app.test_client()
    project = projects.post("/v1/projects", json={"name": "vision"}).json["id"]
    code, out, _ = command(capsys, "submit", "train.py", "--queue", "cpu", "--project", project)
    told = projects.get(f"/v1/runs/{out.split()[0]}").json
    assert (code, told["queue"], told["project"]) == (0, "cpu", project)
    code, _, err = command(capsys, "submit", "train.py", "--queue", "gpuu")
    assert (code, "did you mean `gpu`?" in err) == (2, True)


@pytest.mark.parametrize("seconds", ["-1", "nan", "1e9"])
def test_a_wait_that_is_no_time_is_refused(folder, capsys, seconds):
    code, _, err = command(capsys, "submit", "train.py", f"--wait={seconds}")
    assert (code, "is no number of seconds" in err) == (2, True)


def test_open_prints_the_page_of_a_run_and_of_a_finding(served, folder, capsys, monkeypatch):
    site, url = served
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)))
    run = site.finished()
    finding = site.app.test_client().get(f"/v1/runs/{run}/findings").json["items"][0]["id"]
    code, out, err = command(capsys, "open", run)
    assert (code, out) == (0, f"{url}/runs/{run}\n")
    assert "no browser was found" in err
    assert command(capsys, "open", "--print", finding)[:2] == (0, f"{url}/runs/{run}#finding-{finding}\n")
    assert opened == [f"{url}/runs/{run}"]
    assert f'id="finding-{finding}"' in site.app.test_client().get(f"/runs/{run}").text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("open", "train.py"), "neither the id of a run nor of a finding"),
        (("show", "run_X"), "neither a file nor the id of a run"),
        (("compare", "run_1", "run_2"), "`run_1` is not the id of a run: one is `run_` and 26 letters and digits"),
    ],
)
def test_what_is_no_id_is_said_without_a_pattern(folder, capsys, words, said):
    code, out, err = command(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "[0-" not in err
