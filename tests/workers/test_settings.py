"""What a worker takes from its environment."""

import pytest

from backprobe.cli import main
from workers.settings import WorkerSettings, slots


def test_an_empty_environment_gives_the_defaults():
    settings = WorkerSettings.from_environment({})
    assert settings == WorkerSettings()
    assert (settings.executor, settings.visible_devices, settings.parent) == (None, None, None)
    assert (settings.lease_seconds, settings.drain_seconds) == (30.0, 30.0)


def test_every_variable_is_read():
    settings = WorkerSettings.from_environment(
        {
            "BACKPROBE_EXECUTOR": "/run/x.sock",
            "CUDA_VISIBLE_DEVICES": "1",
            "BACKPROBE_PARENT_PID": "7",
            "BACKPROBE_LEASE_SECONDS": "4",
            "BACKPROBE_DRAIN_SECONDS": "0.5",
            "BACKPROBE_GPU_MEMORY_FRACTION": "0.5",
            "BACKPROBE_AHEAD": "0",
            "BACKPROBE_WARM_FURTHER": "0",
        }
    )
    assert settings == WorkerSettings(
        executor="/run/x.sock",
        visible_devices="1",
        parent=7,
        lease_seconds=4.0,
        drain_seconds=0.5,
        gpu_memory_fraction=0.5,
        ahead=False,
        warm_further=False,
    )


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="soon"):
        WorkerSettings.from_environment({"BACKPROBE_LEASE_SECONDS": "soon"})


@pytest.mark.parametrize("said", ["0", "-1", "1.1", "nan"])
def test_a_share_of_memory_is_above_0_and_at_most_1(said):
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        WorkerSettings.from_environment({"BACKPROBE_GPU_MEMORY_FRACTION": said})


def test_what_is_no_level_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="it must be auto, none, process, namespace, gvisor"):
        WorkerSettings.from_environment({"BACKPROBE_ISOLATION": "best"})


def test_a_command_tells_it_in_one_line(monkeypatch, capsys):
    monkeypatch.setenv("BACKPROBE_ISOLATION", "best")
    for command in (["worker"], ["doctor", "--no-probe"], ["executor", "--socket", "/nowhere"]):
        assert main(command) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_gpu_is_not_shared_unless_asked():
    assert slots(None, "gpu") == 1
    assert slots(3, "gpu") == 3
    assert [slots(None, "cpu", cpus=cpus) for cpus in (0.25, 1.0, 1.5, 2.0, 64.0)] == [1, 2, 3, 4, 128]


def test_a_sentry_is_not_shared_whatever_was_asked_for():
    assert slots(None, "cpu", "gvisor") == 1
    assert slots(4, "cpu", "gvisor") == 1
