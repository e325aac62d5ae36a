"""What a worker has for its runs, and which it lets in; and how much memory it takes itself to have."""

import threading
from types import SimpleNamespace

import pytest

from store.runs.limits import Limits
from workers.admission import Admission
from workers.machine_memory import KEPT_BYTES, machine_bytes, memory_for_runs

GIB = 1 << 30
DEFAULT = Limits().promised_bytes


def claimer(numbers=None):
    """Takes a run with the default limits, if there is room; and notes what was free."""
    free, numbers = [], numbers or iter(range(100))

    def take(room):
        free.append(room.free_bytes)
        return SimpleNamespace(run_id=next(numbers), limits=Limits()) if room.free_bytes >= DEFAULT else None

    return free, take


def test_the_sum_of_what_runs_promise_stays_below_what_there_is():
    admission, (free, take) = Admission(8 * GIB), claimer()
    taken = [admission.claim(take) for _ in range(5)]
    assert [run is not None for run in taken] == [True, True, True, False, False]
    assert free == [8 * GIB, 8 * GIB - DEFAULT, 8 * GIB - 2 * DEFAULT, *[8 * GIB - 3 * DEFAULT] * 2]
    admission.give_back(taken[0])
    assert admission.claim(take) is not None


def test_claims_at_once_count_each_other():
    admission, (_free, take) = Admission(8 * GIB), claimer()
    begin, taken = threading.Barrier(8), []

    def claim():
        begin.wait()
        taken.append(admission.claim(take))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(run is not None for run in taken) == 3


def test_a_run_with_the_default_limits_has_room_on_any_machine():
    admission, (_free, take) = Admission(GIB // 2), claimer()
    assert admission.claim(take) is not None
    assert admission.claim(take) is None


@pytest.mark.parametrize(("total", "left"), [(64 * GIB, 56 * GIB), (4 * GIB, 4 * GIB - KEPT_BYTES), (GIB // 2, 0)])
def test_some_of_the_memory_is_no_runs(total, left):
    assert memory_for_runs(total) == left


@pytest.mark.parametrize(
    ("listed", "limits", "least"),
    [
        ("0::/\n", {"memory.max": "max"}, 24),
        ("0::/\n", {"memory.max": str(6 * GIB)}, 6),
        ("0::/a/b\n", {"a/memory.max": str(5 * GIB), "a/b/memory.max": "max"}, 5),
        ("3:cpu:/x\n2:memory:/a\n", {"memory/a/memory.limit_in_bytes": str(4 * GIB)}, 4),
        ("2:memory:/docker/of-the-host\n", {"memory/memory.limit_in_bytes": str(3 * GIB)}, 3),
        ("3:cpu:/a\n", {"memory/a/memory.limit_in_bytes": str(4 * GIB)}, 24),
    ],
)
def test_the_container_around_it_limits_the_memory_too(tmp_path, listed, limits, least):
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text(f"MemTotal:  {24 * GIB >> 10} kB\nMemFree: 1 kB\n")
    (tmp_path / "self/cgroup").write_text(listed)
    for name, text in limits.items():
        (tmp_path / "cgroups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroups" / name).write_text(text)
    assert machine_bytes(tmp_path, tmp_path / "cgroups") == least * GIB
