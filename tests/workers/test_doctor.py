"""What `backprobe doctor` says of this machine: each level, why not more, and whether runs have cgroups."""

from pathlib import Path

import pytest

from tests.support.isolation import confined
from workers import doctor
from workers.sandbox import boot, cgroups, offer, runsc, start
from workers.sandbox.hierarchies import NoCgroup
from workers.sandbox.probe import Proof
from workers.settings import WorkerSettings


@pytest.fixture
def proved(monkeypatch):
    """The probe has tests of its own: here every level that lacks nothing holds."""
    monkeypatch.setattr(doctor, "_attacked", lambda _: Proof(probe_id="probe_1", breaches=(), seconds=0.1))


@pytest.mark.usefixtures("proved")
def test_it_says_whether_runs_have_cgroups_and_if_not_why(capsys, monkeypatch):
    confined("namespace")
    if cgroups.lacking() is None:
        assert doctor.examine(WorkerSettings(), probe=True) == 0
        assert "with a cgroup for each run" in capsys.readouterr().out

    def nowhere():
        raise NoCgroup("/sys/fs/cgroup cannot be written (give it a part)")

    monkeypatch.setattr(cgroups.hierarchies, "find", nowhere)
    assert doctor.examine(WorkerSettings(), probe=True) == 0
    assert "without cgroups" in (said := capsys.readouterr().out)
    assert "/sys/fs/cgroup cannot be written (give it a part)" in said


@pytest.mark.usefixtures("proved")
def test_a_second_kernel_that_is_absent_is_named_with_where_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr(runsc.shutil, "which", lambda _: None)
    doctor.examine(WorkerSettings(isolation="gvisor"), probe=True)
    assert "runsc is not installed (gvisor.dev" in (said := capsys.readouterr().out)
    assert "A worker would not start: isolation gvisor cannot be given here" in said


@pytest.mark.usefixtures("proved")
def test_a_second_kernel_that_is_there_is_proved_like_any_level_and_never_chosen_unasked(capsys, require):
    require("runsc")
    confined("gvisor")
    doctor.examine(WorkerSettings(), probe=True)
    said = capsys.readouterr().out
    assert "gvisor     holds: every canary was contained" in said
    assert "runs everything at gvisor" not in said
    doctor.examine(WorkerSettings(isolation="gvisor"), probe=True)
    assert "runs everything at gvisor" in capsys.readouterr().out


def test_an_interpreter_in_tmp_is_seen_by_the_warm_process_and_keeps_a_machine_from_namespace(monkeypatch):
    from workers.sandbox import private_root, readable

    elsewhere = tuple(one for one in readable.python_folders() if not one.startswith("/tmp/"))
    monkeypatch.setattr(readable, "python_folders", lambda: (*elsewhere, "/tmp/work/.venv"))
    assert any("/tmp/work/.venv lies in /tmp" in one for one in offer.lacking("namespace"))
    assert not any("lies in /tmp" in one for one in offer.lacking("process"))
    monkeypatch.setattr(private_root.shutil, "which", lambda _: "/usr/bin/bwrap")
    words = private_root.wrapped(["true"])
    assert words.index("--tmpfs") < words.index("/tmp/work/.venv")


@pytest.mark.usefixtures("proved")
def test_it_says_what_a_worker_of_the_gpu_queue_would_have(capsys, monkeypatch):
    import torch

    settings = WorkerSettings(trust_code=True)
    if not torch.cuda.is_available():
        doctor.examine(settings, probe=True)
        said = capsys.readouterr().out
        assert "the gpu queue would wait, taking no run: the warm process did not start: torch finds no CUDA" in said
    stand_in = (str(Path(__file__).parent / "sandbox" / "stand_in_device.py"),)
    monkeypatch.setattr(start, "exec_keeper", lambda seen, fraction: boot.exec_keeper(seen, fraction, stand_in))
    doctor.examine(settings, probe=True)
    assert "A worker of the gpu queue would have stand-in with 90% of its memory." in capsys.readouterr().out
    doctor.examine(WorkerSettings(), probe=True)
    assert "A worker of the gpu queue would not start: isolation process cannot be given" in capsys.readouterr().out
