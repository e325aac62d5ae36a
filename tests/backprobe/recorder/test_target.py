"""Where a record goes, by arguments and by the environment of a cluster."""

from __future__ import annotations

import sys

import pytest

from backprobe.recorder.connection import checked_url
from backprobe.recorder.pace import SOON_BYTES, Backoff, Pace, stagger
from backprobe.recorder.target import Place, place_of, script_name, target_of
from backprobe.recorder.training_job import JobRequest


@pytest.fixture(autouse=True)
def quick():
    """The real pauses: no test here waits for them."""


def target(environ, **given):
    return target_of(**{"url": None, "project": None, "labels": {}, "capture": {}, "environ": environ, **given})


def test_the_environment_alone_switches_it_on_and_an_argument_wins():
    assert target({}) is None
    environ = {"BACKPROBE_URL": "https://a.example/", "BACKPROBE_API_KEY": "k", "BACKPROBE_PROJECT": "prj_1"}
    found = target(environ)
    assert (found.url, found.key, found.project) == ("https://a.example", "k", "prj_1")
    assert target(environ, url="http://b.example:80/x").url == "http://b.example:80/x"
    assert target(environ, url="") is None
    assert found.body("2.13", None) == {
        "labels": {},
        "capture": {},
        "environment": {"torch": "2.13"},
        "project": "prj_1",
    }


@pytest.mark.parametrize("url", ["ftp://a", "a.example", "http://", "http://u:p@a", "http://a?b", "http://a:99999"])
def test_what_is_no_address_is_refused_with_what_one_is(url):
    with pytest.raises(ValueError, match=r"no address of a service|scheme, host, port and path only"):
        checked_url(url)
    with pytest.raises(ValueError, match="url="):
        JobRequest(url=url).check()


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, Place()),
        ({"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "j"}, Place(rank=3, world_size=8, group="j")),
        ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h", "MASTER_PORT": "1"}, Place(world_size=2, group="h:1")),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "77"}, Place(rank=1, world_size=2, group="77")),
        ({"RANK": "x", "WORLD_SIZE": "-1"}, Place()),
        ({"BACKPROBE_JOB": "gpt", "SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "2"}, Place(group="gpt", restart=2)),
    ],
)  # fmt: skip
def test_a_process_knows_its_rank_and_what_its_job_has_in_common(environ, place):
    assert place_of(environ) == place


def test_ranks_of_one_job_have_one_group_and_their_own_rank():
    environ = {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "j"}
    assert place_of(environ).labels == {"group": "j", "rank": "1", "world_size": "2"}
    assert place_of({}, rank=1, world_size=2).labels == {"rank": "1", "world_size": "2"}
    sends = JobRequest(url="http://a")
    assert [sends.records(Place(rank=n, world_size=2)) for n in (0, 1)] == [True, False]
    assert JobRequest(url="http://a", ranks="all").records(Place(rank=1, world_size=2))
    assert JobRequest(url="").records(Place(rank=1, world_size=2)), "nothing is sent: each process is on its own"


@pytest.mark.parametrize("given", [{"source": "some"}, {"ranks": "last"}])
def test_an_argument_that_cannot_be_is_refused(given):
    with pytest.raises(ValueError, match="it is"):
        JobRequest(**given).check()


def test_an_address_of_the_environment_that_is_none_is_logged_and_the_job_goes_on(monkeypatch, caplog):
    monkeypatch.setenv("BACKPROBE_URL", "nowhere")
    asked = JobRequest()
    asked.check()
    assert asked.sender(Place(), tier="full", every=None) is None
    assert "no address" in caplog.text
    assert caplog.messages[0].startswith("backprobe: ")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_frames_are_gathered_for_a_share_of_the_time_that_the_job_has_gone_on():
    clock = Clock()
    pace = Pace(clock)
    assert pace.due_in(1) == 2.0
    clock.now = 100.0
    assert (pace.due_in(1), pace.due_in(1 << 20)) == (0.0, 0.0)
    pace.note_sent()
    assert (pace.due_in(1), pace.due_in(1 << 20)) == (15.0, 2.0)
    clock.now = 1e6
    pace.note_sent()
    assert pace.due_in(1) == 180.0


def test_a_stretched_pace_sends_less_often_throughout():
    now = [0.0]
    plain, stretched = (Pace(lambda: now[0], stretch) for stretch in (1.0, 1.5))
    for now[0] in (1.0, 100.0, 10_000.0):
        for waiting in (1, SOON_BYTES):
            assert stretched.request_interval(waiting) == 1.5 * plain.request_interval(waiting)


def test_ranks_of_a_job_begin_and_end_one_after_the_other():
    ranks = [stagger({"rank": str(rank), "world_size": "1000"}) for rank in range(1000)]
    assert ranks[0] == stagger({}) == stagger({"rank": "first"}) == (0.0, 0.0)
    assert ranks[3] == (pytest.approx(0.15), pytest.approx(0.06))
    assert ranks == sorted(ranks)
    assert ranks[-1] == (10.0, 1.5)
    clock = Clock()
    pace = Pace(clock, later=ranks[3].begin)
    assert pace.due_in(1) == pytest.approx(2.15)
    clock.now = 2.15
    pace.note_sent()
    assert pace.due_in(1) == pytest.approx(2.0)  # only the first request is later


@pytest.mark.parametrize("step_seconds", [0.001, 0.01, 0.1, 1.0, 3.0])
def test_a_thousand_steps_are_at_most_sixty_requests(step_seconds):
    clock = Clock()
    pace = Pace(clock)
    requests = 2  # to begin and to end
    while clock.now < 1000 * step_seconds:
        clock.now += max(pace.due_in(1), step_seconds)
        pace.note_sent()
        requests += 1
    assert requests <= 60


def test_pauses_grow_to_a_minute_and_what_the_service_asks_for_is_kept():
    clock = Clock()
    backoff = Backoff(clock, lambda: 0.5)
    assert backoff.seconds_left() == 0.0
    pauses = []
    for _ in range(8):
        backoff.lengthen_pause()
        pauses.append(backoff.seconds_left())
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    backoff.lengthen_pause(300.0)
    assert backoff.seconds_left() == 300.0 * 1.25  # later than asked for, by half of the half that `spread` draws from
    backoff.note_answer()
    assert backoff.seconds_left() == 0.0
    backoff.lengthen_pause()
    assert backoff.seconds_left() == 1.0


@pytest.mark.parametrize(
    ("argv", "environ", "name"),
    [
        (("/jobs/train.py", "--lr", "1"), {}, "train.py"),
        (("/jobs/trainer/__main__.py",), {}, "trainer"),
        (("/x/ipykernel_launcher.py", "-f", "k.json"), {"JPY_SESSION_NAME": "work/gpt.ipynb"}, "gpt.ipynb"),
        (("/x/ipykernel_launcher.py",), {}, "notebook"),
        (("/x/colab_kernel_launcher.py",), {}, "notebook"),
        (("-c",), {}, None),
        (("",), {}, None),
        ((), {}, None),
    ],
)
def test_a_job_is_called_by_its_script_or_notebook(argv, environ, name):
    assert script_name(argv, environ) == name


def test_an_editor_tells_its_notebook_by_a_variable(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__vsc_ipynb_file__", "/jobs/bert.ipynb", raising=False)
    assert script_name(("/x/ipykernel_launcher.py",), {}) == "bert.ipynb"
