"""The processors that a worker counts its slots by: a container's share, not what its host has."""

import os

import pytest

from workers.sandbox.levels import cgroup_mounts
from workers.sandbox.levels.usable_cpus import read_limit, usable_cpus


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine("cgroup2", "/a/b", {"a/cpu.max": "150000 100000"})`: this process is in that group of a hierarchy."""

    def make(kind: str, own: str, files: dict[str, str]) -> None:
        top = tmp_path / "cgroup"
        (top / own.lstrip("/")).mkdir(parents=True)
        for name, text in files.items():
            (top / name).write_text(text)
        options = "rw" if kind == "cgroup2" else "rw,cpu,cpuacct"
        (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {top} rw,nosuid - {kind} {kind} {options}\n")
        (tmp_path / "own").write_text(f"0::{own}\n" if kind == "cgroup2" else f"4:cpu,cpuacct:{own}\n")
        monkeypatch.setattr(cgroup_mounts, "_MOUNTS", tmp_path / "mountinfo")
        monkeypatch.setattr(cgroup_mounts, "_OWN", tmp_path / "own")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))

    return make


@pytest.mark.parametrize(
    ("kind", "own", "files", "cpus"),
    [
        ("cgroup2", "/", {"cpu.max": "200000 100000\n"}, 2.0),
        ("cgroup2", "/pod/box", {"pod/cpu.max": "150000 100000\n", "pod/box/cpu.max": "max 100000\n"}, 1.5),
        ("cgroup2", "/pod/box", {"pod/cpu.max": "400000 100000\n", "pod/box/cpu.max": "50000 100000\n"}, 0.5),
        ("cgroup2", "/pod", {"pod/cpu.max": "max 100000\n"}, 64.0),
        ("cgroup2", "/pod", {}, 64.0),
        ("cgroup", "/box", {"box/cpu.cfs_quota_us": "300000\n", "box/cpu.cfs_period_us": "100000\n"}, 3.0),
        ("cgroup", "/box", {"box/cpu.cfs_quota_us": "-1\n", "box/cpu.cfs_period_us": "100000\n"}, 64.0),
    ],
)
def test_the_least_limit_of_a_group_and_those_above_it_counts(machine, kind, own, files, cpus):
    machine(kind, own, files)
    assert usable_cpus() == cpus


def test_the_affinity_counts_where_no_group_limits(machine, monkeypatch):
    machine("cgroup2", "/", {})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3})
    assert usable_cpus() == 2.0


@pytest.mark.parametrize("text", ["", "max", "x y", "100000 0"])
def test_a_file_that_says_nothing_limits_nothing(tmp_path, text):
    (tmp_path / "cpu.max").write_text(text)
    assert read_limit(tmp_path / "cpu.max") is None
