"""Which tests run side by side: a lane is a set of tests that one test process runs one after the other.

    make test, make test-full                  every lane, on as many test processes as the machine carries
    python -m pytest tests/store               one process, in the order of the files, the quick folders first
    make test ARGS="--random-order-seed=7"     lanes and tests in another order, which must change nothing

1. The tests of a file are one lane: what a module's fixture starts is started once; so are some folders. A file whose fixtures are made for
   each database or isolation level is one lane for each of them.
2. Tests of rules are dealt to a few lanes by their rule.
3. Tests that need something which the machine has once (`SHARED`) are one lane together.
4. As many test processes as there are cores take the lanes that compute first; the others take those that wait
   (`WAITING`). So there is always something to compute, and seldom more than the machine has cores for.
5. Lanes that take long begin first, so that none is begun when all others have ended.
"""

from __future__ import annotations

import os
import re
import zlib
from typing import Any

import psutil
import pytest

from tests.support.resources import ROOT

QUICK = ("laws", "backprobe/record", "backprobe/rules", "backprobe/show", "store")
"""Folders of tests that need no torch: without lanes they run first, in this order."""

SHARED = {"rabbitmq": re.compile(r"rabbitmq", re.IGNORECASE), "gvisor": re.compile(r"gvisor|\bguest\b|sentry")}
"""What a machine has once: RabbitMQ's queues have one name for all; a second kernel takes a core for itself."""

APART = re.compile(
    r"\b(sqlite\+embedded|postgresql\+redis|postgres and redis|embedded|sqlite|postgresql|process|namespace|several)\b"
)
"""Values of fixtures that outlive a test: a database, a stack, an isolation level."""

WAITING = (
    "gvisor",
    "tests/workers/sandbox/test_ahead.py",
    "tests/chaos",
    "tests/workers/test_processes.py",
    "tests/acceptance/test_kills.py",
    "rabbitmq",
    "tests/hostile",
    "tests/service/test_serve.py",
    "tests/workers/test_lease.py",
    "tests/acceptance",
    "tests/store/test_spans.py",
    "tests/service/test_login.py",
    "tests/workers/sandbox",
    "tests/gpu",
    "tests/backprobe/language_server",
    "tests/make",
    "tests/compose",
    "tests/workers",
    "tests/store/test_partitions.py",
    "tests/service/test_stuck_clients.py",
    "tests/service/test_webhooks.py",
    "tests/service/test_children.py",
    "tests/service/test_many_connections.py",
    "tests/store/test_wait.py",
)
"""Lanes, by the beginnings of their names, that wait for other processes most of their time; the longest first."""

COMPUTING = (
    "tests/transparency/test_programs.py",
    "tests/browser",
    "tests/backprobe/rules",
    "tests/transparency",
    "tests/backprobe/notebook",
    "tests/backprobe/capture/gradient_check",
    "tests/backprobe/mcp_server",
    "tests/backprobe/cli",
    "tests/backprobe/capture/test_transparency.py",
    "tests/backprobe/capture/test_deep_tier.py",
    "tests/backprobe/capture/test_processes.py",
    "tests/oracle",
    "tests/migration",
    "tests/backprobe/capture",
    "tests/service/test_contract.py",
    "tests/service",
    "tests/store",
)
"""The long ones of the others, the longest first, as `make test` lists them at its end."""

GIB_EACH = 1.5
"""Memory of a test process with torch, its warm processes and the servers that it starts."""

MOST_PROCESSES = 12
"""Redis has fifteen databases for tests, and a few tests take two."""


TOGETHER = ("tests/corpus/", "tests/mutation/")
"""Folders that are one lane: their tests run the same programs, and keep each record for the next."""

BY_RULE = ("tests/backprobe/rules/test_manuals.py", "tests/backprobe/rules/test_programs.py")
"""Files of which the tests of one rule run the same programs, those of two rules never."""

RULE_LANES = 8
"""They are dealt to so many lanes, by the rule: as one lane they would compute when all others have ended."""

CONFINED = {
    *(f"tests/workers/test_{name}.py" for name in ("feed", "pipeline", "spans")),
    *(
        f"tests/workers/sandbox/test_{name}.py"
        for name in (
            "cgroups", "compatibility", "deadlines", "gradient_checks", "leftovers", "limits", "lockdown", "programs", "several", "slots",
        )
    ),
}  # fmt: skip
"""Files whose tests share a warm process of each isolation level: one lane, so that each level is warmed once."""

SERVED = {
    f"tests/acceptance/test_{name}.py"
    for name in ("bad_programs", "bad_requests", "language_server", "recorder", "seed_claims")
}
"""Files that ask one running service, of which there is one for each stack."""


def lane(nodeid: str) -> str:
    """The lane of a test, by its id alone.

    tests/service/test_runs.py::test_a[sqlite]   ->  tests/service/test_runs.py[sqlite]
    tests/laws/test_size.py::test_b              ->  tests/laws/test_size.py
    tests/acceptance/test_rabbitmq.py::test_c    ->  rabbitmq
    tests/backprobe/rules/test_manuals.py::test_rule[missing-zero-grad: it_is_pure]  ->  tests/backprobe/rules/6
    """
    for name, pattern in SHARED.items():
        if pattern.search(nodeid):
            return name
    path, _, rest = nodeid.partition("::")
    if path in BY_RULE and "[" in rest:
        rule = re.split(r"[:\]]", rest.partition("[")[2])[0]
        return f"tests/backprobe/rules/{zlib.crc32(rule.encode()) % RULE_LANES}"
    for folder in TOGETHER:
        if nodeid.startswith(folder):
            return folder
    if path in CONFINED:
        return "tests/workers/sandbox"
    if path in SERVED:
        path = "tests/acceptance"
    value = APART.search(rest.partition("[")[2])
    return f"{path}[{value[1]}]" if value else path


def waits(name: str) -> bool:
    """A lane that waits for other processes most of its time."""
    return name.startswith(WAITING)


def _rank(name: str) -> int:
    kind = WAITING if waits(name) else COMPUTING
    return next((n for n, beginning in enumerate(kind) if name.startswith(beginning)), len(kind))


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def _folder_rank(item: pytest.Item) -> int:
    tests = ROOT / "tests"
    folder = item.path.relative_to(tests).as_posix() if item.path.is_relative_to(tests) else ""
    return next((n for n, quick in enumerate(QUICK) if folder.startswith(f"{quick}/")), len(QUICK))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long lanes first where there are lanes, quick folders first where there are none; inside them the order stays."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _rank(lane(item.nodeid)))
    else:
        items.sort(key=_folder_rank)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half as many again as cores; for the full tier, whose tests wait, two and a half times; fewer in little memory."""
    memory = int(psutil.virtual_memory().available / (1 << 30) / GIB_EACH)
    wanted = 3 * cores() // 2 if config.option.markexpr == "not full" else 5 * cores() // 2
    return max(1, min(wanted, memory, MOST_PROCESSES))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hands out lanes whole, in the order in which the tests were collected, by what each test process takes first."""
    from xdist.scheduler import LoadScopeScheduling

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            computes = int(node.gateway.id.removeprefix("gw")) < cores()
            first = next((name for name in self.workqueue if waits(name) != computes), None)
            if first is not None:
                self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Lanes(config, log)
