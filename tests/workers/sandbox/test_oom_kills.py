"""Kills by the kernel for want of memory are counted: of runs with a cgroup, and of the group in which the others are."""

import pytest

from workers.sandbox.levels import cgroup_mounts
from workers.sandbox.levels.oom_kills import count_oom_kills, read_count
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.supervisor import Supervisor


@pytest.mark.parametrize(
    ("kind", "options", "own", "file", "text"),
    [
        ("cgroup2", "rw", "0::/box\n", "memory.events.local", "low 0\noom 9\noom_kill 3\noom_group_kill 1\n"),
        (
            "cgroup",
            "rw,memory",
            "9:memory:/box\n",
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        ),
    ],
)
def test_the_kills_of_this_process_own_group_are_read(tmp_path, monkeypatch, kind, options, own, file, text):
    top = tmp_path / "cgroup"
    (top / "box").mkdir(parents=True)
    (top / "box" / file).write_text(text)
    (top / file).write_text(text.replace("oom_kill 3", "oom_kill 50"))
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {top} rw,nosuid - {kind} {kind} {options}\n")
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(cgroup_mounts, "_MOUNTS", tmp_path / "mountinfo")
    monkeypatch.setattr(cgroup_mounts, "_OWN", tmp_path / "own")
    assert count_oom_kills() == 3


@pytest.mark.parametrize("text", ["", "oom 4\n", "oom_kill x\n"])
def test_a_file_without_the_number_counts_none(tmp_path, text):
    (tmp_path / "memory.events.local").write_text(text)
    assert read_count(tmp_path / "memory.events.local") == 0


@pytest.mark.usefixtures("sandbox")
def test_a_supervisor_counts_from_its_own_start(wait_until):
    killed = iter([7, 7, 9])
    with Supervisor(exec_zygote, count_oom_kills=lambda: next(killed)) as supervisor:
        assert (supervisor.oom_kills, supervisor.oom_kills) == (0, 2)


@pytest.mark.usefixtures("sandbox")
def test_a_warm_process_that_is_killed_counts_as_lost(wait_until):
    links = []

    def boot():
        links.append(exec_zygote())
        return links[-1]

    with Supervisor(boot) as supervisor:
        assert supervisor.wait_warm(60)
        assert supervisor.warm_losses == 0
        links[0].process.kill()
        wait_until(lambda: supervisor.warm_losses == 1, "the loss is counted")
