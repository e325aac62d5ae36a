"""`backprobe spool`, and `backprobe watch --url`'s refusals: what a person sees of a service that was away."""

from __future__ import annotations

import json
from email.utils import formatdate

import pytest

from backprobe.cli import main
from backprobe.record import dumps, split
from backprobe.recorder.record_sender import Sender
from backprobe.recorder.target import Target, spool_home
from tests.support import samples
from tests.support.frame_server import FrameServer


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def service():
    server = FrameServer()
    yield server
    server.stop()


@pytest.fixture
def run(service):
    """A run in the spool: its service was away."""
    service.stop()
    sender = Sender(Target(url=service.url), source="full")
    sender.put(dumps(samples.tutorial())[len(b"BPREC\x01\n") :])
    sender.close({})
    service.start()
    return sender.health.run


def test_what_is_spooled_is_listed_sent_with_the_key_and_gone(service, run, monkeypatch, capsys):
    monkeypatch.setenv("BACKPROBE_API_KEY", "bp_k")
    assert main(["spool", "list"]) == 0
    assert f"{run}  " in (said := capsys.readouterr().out)
    assert "ended" in said
    assert main(["spool", "list", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["run"], told["ended"], told["in_use"]) == (run, True, False)
    assert main(["spool", "send", run]) == 0
    assert f"{run}  sent to {service.url}/runs/{run}" in capsys.readouterr().out
    assert service.frames[run] == list(split(dumps(samples.tutorial())))
    assert {request.key for request in service.requests} == {"Bearer bp_k"}
    assert main(["spool", "list"]) == 0
    assert "nothing is spooled" in capsys.readouterr().err


def test_what_is_refused_again_is_left_and_says_why(service, run, capsys):
    service.refusal = lambda _: (403, {"code": "forbidden", "detail": "Not yours."}, {})
    assert main(["spool", "send"]) == 3
    assert f"{run} is left: 403 forbidden: Not yours." in capsys.readouterr().err
    assert main(["spool", "send", "--url", "ftp://x"]) == 2
    assert main(["spool", "drop"]) == 0
    assert list(spool_home().iterdir()) == []


def test_what_the_service_wants_no_more_of_is_not_said_to_be_sent(service, run, capsys):
    service.refusal = lambda request: (409, {"code": "run-ended"}, {}) if "/frames/" in request.path else None
    assert main(["spool", "send"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{run} is deleted: {service.url} takes no more of it (409 run-ended)" in said.err


def test_a_run_that_got_another_id_is_named_by_that(service, run, capsys):
    now = {"Date": formatdate(1_800_000_000, usegmt=True)}
    service.refusal = lambda request: (
        (422, {"code": "id-time-refused"}, now) if run in request.path and request.method == "PUT" else None
    )
    assert main(["spool", "send"]) == 0
    (sent,) = service.frames
    assert sent != run
    assert f"{run}  sent to {service.url}/runs/{sent}\n" in capsys.readouterr().out


def test_a_run_that_holds_nothing_is_not_said_to_be_sent(service, run, capsys):
    (folder,) = spool_home().iterdir()
    for path in folder.iterdir():
        if path.name not in ("run.json", "lock"):
            path.unlink()
    assert main(["spool", "send"]) == 0
    assert "sent to" not in capsys.readouterr().out
    assert service.requests == []


def test_the_last_line_of_a_job_says_what_was_sent_spooled_and_lost(service, home):
    target = Target(url=service.url)
    frames = dumps(samples.tutorial())[len(b"BPREC\x01\n") :]
    whole = Sender(target, source="full")
    whole.put(frames)
    whole.close({}, seconds=60)
    count = len(service.frames[whole.health.run])
    assert whole.health.summary() == f"backprobe: {count} frames sent to {service.url}/runs/{whole.health.run}"
    service.refusal = lambda _: (401, {"code": "unauthenticated"}, {})
    spools = Sender(Target(url=service.url), source="full")
    spools.put(frames)
    spools.close({}, seconds=60)
    said = spools.health.summary()
    assert said.startswith(
        f"backprobe: nothing of {spools.health.run} was sent to {service.url}; refused: 401 unauthenticated; "
    )
    assert said.endswith(f"{spools.health.spooled_bytes:,} bytes spooled, `backprobe spool send` sends them")
    blocked = home / "file"
    blocked.write_text("no folder can be made below it")
    loses = Sender(Target(url=service.url), source="full", home=blocked / "spool")
    loses.put(frames)
    loses.close({}, seconds=60)
    assert f"{loses.health.waiting_bytes:,} bytes in memory only, lost when this process ends" in loses.health.summary()
    assert loses.health.waiting_bytes > 0


def test_a_run_whose_job_goes_on_is_neither_sent_nor_dropped(service, run, capsys):
    from backprobe.recorder.spool import SpoolFolder

    held = SpoolFolder(spool_home(), run)
    assert held.hold()
    assert (main(["spool", "send"]), main(["spool", "drop"])) == (3, 3)
    assert "its job goes on" in capsys.readouterr().err
    held.close()
    assert main(["spool", "drop", run]) == 0


def test_a_run_that_is_not_there_is_told(capsys):
    assert main(["spool", "send", "run_1"]) == 2
    assert "`backprobe spool list` tells which there are" in capsys.readouterr().err


def test_an_address_that_is_none_is_refused_before_the_script_is_run(tmp_path, capsys):
    script = tmp_path / "a.py"
    script.write_text("raise SystemExit(9)")
    assert main(["watch", "--url", "ftp://x", str(script)]) == 2
    assert "--url 'ftp://x' is no address" in capsys.readouterr().err


def test_without_a_word_it_asks_for_one_and_for_no_run(capsys):
    assert main(["spool"]) == 2
    assert "the following arguments are required: {list,send,drop}\n" in capsys.readouterr().err
