"""What `backprobe doctor` says of this machine: each level, why not more, and whether runs have cgroups."""

import tempfile
from functools import partial
from pathlib import Path

import pytest

from backprobe.isolation import IsolationLevel
from store.admin import workers
from store.database import migrator
from store.database.session import Database
from store.database.settings import StoreSettings
from tests.support.isolation import confined
from tests.support.machine_level import machine_level
from workers import doctor
from workers.sandbox.gvisor import runsc
from workers.sandbox.levels import capabilities, cgroups
from workers.sandbox.levels.cgroup_mounts import NoCgroup
from workers.sandbox.levels.probe import Proof
from workers.sandbox.remote import boot
from workers.sandbox.supervisor import start
from workers.settings import WorkerSettings


@pytest.fixture
def proved(monkeypatch):
    """Other tests check the probe: here every level without a missing part holds."""
    monkeypatch.setattr(doctor, "_attack_sandbox", lambda _: Proof(probe_id="probe_1", breaches=(), seconds=0.1))


@pytest.mark.usefixtures("sandbox")
@pytest.mark.usefixtures("proved")
def test_it_says_whether_runs_have_cgroups_and_if_not_why(capsys, monkeypatch):
    confined("namespace")
    if cgroups.lacking() is None:
        assert doctor.examine(WorkerSettings(), probe=True) == 0
        assert "with a cgroup for each run" in capsys.readouterr().out

    def nowhere():
        raise NoCgroup("/sys/fs/cgroup cannot be written (give it a part)")

    monkeypatch.setattr(cgroups.cgroup_mounts, "find", nowhere)
    assert doctor.examine(WorkerSettings(), probe=True) == 0
    assert "without cgroups" in (said := capsys.readouterr().out)
    assert "/sys/fs/cgroup cannot be written (give it a part)" in said


@pytest.mark.usefixtures("proved")
def test_a_second_kernel_that_is_absent_is_named_with_where_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr(runsc.shutil, "which", lambda _: None)
    doctor.examine(WorkerSettings(isolation="gvisor"), probe=True)
    assert "runsc is not installed (gvisor.dev" in (said := capsys.readouterr().out)
    assert "A worker would not start: isolation gvisor cannot be given here" in said


@pytest.mark.usefixtures("sandbox")
@pytest.mark.usefixtures("proved")
def test_a_second_kernel_that_is_there_is_proved_like_any_level_and_never_chosen_unasked(capsys, require):
    require("runsc")
    confined("gvisor")
    doctor.examine(WorkerSettings(), probe=True)
    said = capsys.readouterr().out
    assert "gvisor     isolates: every test attack was contained" in said
    assert "runs everything at gvisor" not in said
    doctor.examine(WorkerSettings(isolation="gvisor"), probe=True)
    assert "runs everything at gvisor" in capsys.readouterr().out


@pytest.mark.usefixtures("sandbox")
def test_an_interpreter_in_tmp_is_bound_after_the_private_tmp_and_hides_no_level(monkeypatch):
    from workers.sandbox.process import landlock, private_root

    confined("namespace")
    with tempfile.TemporaryDirectory(dir="/tmp") as environment:
        Path(environment).chmod(0o755)
        monkeypatch.setattr(landlock, "python_paths", lambda: (environment,))
        assert capabilities.lacking("namespace") == ()
        words = private_root.wrap_command(["true"])
        assert words.index("--tmpfs") < words.index(environment)


@pytest.mark.usefixtures("sandbox")
@pytest.mark.usefixtures("proved")
def test_it_says_what_a_worker_of_the_gpu_queue_would_have(capsys, monkeypatch):
    import torch

    settings = WorkerSettings(trust_code=True)
    if not torch.cuda.is_available():
        doctor.examine(settings, probe=True)
        said = capsys.readouterr().out
        assert "the gpu queue would start but take no runs: the warm process did not start: torch finds no CUDA" in said
    stand_in = (str(Path(__file__).parent / "sandbox" / "stand_in_device.py"),)
    monkeypatch.setattr(start, "exec_keeper", partial(boot.exec_keeper, program=stand_in))
    doctor.examine(settings, probe=True)
    assert "A worker of the gpu queue would have stand-in with 90% of its memory." in capsys.readouterr().out
    doctor.examine(WorkerSettings(), probe=True)
    assert "A worker of the gpu queue would not start: isolation process cannot be given" in capsys.readouterr().out


@pytest.mark.usefixtures("sandbox")
@pytest.mark.usefixtures("proved")
def test_it_looks_at_the_workers_that_run_and_at_the_broker(capsys, tmp_path):
    def examine() -> str:
        doctor.examine(WorkerSettings(), probe=False, store=store)
        return capsys.readouterr().out

    environ = {"BACKPROBE_HOME": str(tmp_path), "BACKPROBE_BROKER_URL": "redis://:hush@127.0.0.1:1/0"}
    store = StoreSettings.from_environment(environ)
    first = examine()
    assert "No worker is woken: the broker redis://:**@127.0.0.1:1/0 does not answer" in first
    assert "hush" not in first
    assert "No worker is running: there is no database at" in first
    migrator.upgrade(store.database_url)
    assert "No worker is running." in examine()
    database = Database(store.database_url)
    told: list[tuple[tuple[IsolationLevel, ...], dict[str, object]]] = [
        (("none",), {"missed": ["isolation process cannot be given here: Landlock is version 0"]}),
        ((), {"why": "isolation process does not hold: files"}),
        ((), {}),
    ]
    with database.begin() as transaction:
        for n, (levels, probe) in enumerate(told):
            worker = workers.WorkerNode(id=f"h:{n}:a", queues=("cpu",), levels=levels, devices=("cpu",), probe=probe)
            workers.beat(transaction, worker)
    database.close()
    lines = examine().splitlines()
    assert "The worker h:0:a (queue cpu) runs everything at none now, and looks again for more: isolation process" in (
        "".join(line for line in lines if "h:0:a" in line)
    )
    assert (
        "The worker h:1:a (queue cpu) runs nothing now, and tries again: isolation process does not hold: files."
        in lines
    )
    assert "The worker h:2:a (queue cpu) is starting." in lines


def test_a_home_that_cannot_be_written_or_has_little_room_is_told(capsys, monkeypatch, tmp_path):
    def examine_store(home: str) -> str:
        store = StoreSettings.from_environment(
            {"BACKPROBE_HOME": home, "BACKPROBE_DATABASE_URL": f"sqlite:///{tmp_path}/x.db"}
        )
        doctor.examine(WorkerSettings(), probe=False, store=store)
        return capsys.readouterr().out

    assert "Nothing can be written to /proc (" in examine_store("/proc"), "for root too"
    assert "MiB left" not in examine_store(str(tmp_path))
    monkeypatch.setattr(doctor, "LITTLE_BYTES", 1 << 62)
    assert f"The disk of {tmp_path} has " in examine_store(str(tmp_path))
    assert str(tmp_path / "new") not in examine_store(str(tmp_path / "new")), "it is made at the first start"


@pytest.mark.usefixtures("sandbox")
def test_the_tests_expect_the_level_that_doctor_names(capsys):
    doctor.examine(WorkerSettings(trust_code=True), probe=False)
    assert f"runs everything at {machine_level()}." in capsys.readouterr().out


@pytest.mark.usefixtures("sandbox")
def test_what_would_be_chosen_and_does_not_hold_is_not_promised(capsys, monkeypatch):
    confined("process")
    monkeypatch.setattr(
        doctor, "_attack_sandbox", lambda _: Proof(probe_id="probe_1", breaches=("files: x",), seconds=0.1)
    )
    monkeypatch.setattr(doctor, "_gpu", lambda *_, **__: None)
    assert doctor.examine(WorkerSettings(), probe=True) == doctor.NO_LEVEL
    assert "A worker with these settings would run nothing: " in capsys.readouterr().out
