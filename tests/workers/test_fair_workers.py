"""A tenant fills all that it can of a worker: slots, memory and private folders. Another's runs take about as long as ever.

`bench/fairness.py` measures the same for requests; here the worker is real, and so are the runs.
"""

import statistics
import time

import pytest
import sqlalchemy as sa

from store import tables
from store.runs import lifecycle
from store.runs.limits import Limits, tenant_memory_bytes
from tests.support.isolation import confined

pytestmark = pytest.mark.usefixtures("sandbox")

SLOTS = 4
MEMORY_BYTES = 12 << 30
"""Of the worker: so that memory, and not only slots, is what a tenant can fill."""

RATIO = 3.0
SLOWEST_QUIET_SECONDS = 0.5
"""On a machine with other work a time below this is chance."""

WAIT_SECONDS = 60.0
RUNS = 5
GOOD = "import torch\nw = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()\nprint(w.grad)\n"
SLEEPS = "import time\ntime.sleep(600)\n"
HOLDS = "import time\nheld = bytearray(64 << 20)\ntime.sleep(600)\n"
FILLS = """
import os, time
fd = os.open('/tmp/filled', os.O_CREAT | os.O_WRONLY)
try:
    while True: os.write(fd, bytes(1 << 20))
except OSError as error: print(error, flush=True)
time.sleep(600)
"""
LARGE = Limits(wall_seconds=600, memory_bytes=4 << 30, disk_bytes=0)
LARGEST = Limits(wall_seconds=600, memory_bytes=8 << 30, disk_bytes=0)
FOLDER = Limits(wall_seconds=600, memory_bytes=256 << 20, disk_bytes=128 << 20)
THINGS = {
    "slots": (SLEEPS, Limits(wall_seconds=600), 3),
    "memory, by two runs": (HOLDS, LARGE, 2),
    "memory, by one run": (HOLDS, LARGEST, 1),
    "private folders": (FILLS, FOLDER, 3),
}
"""What is filled: by which program, within which limits, and how many runs of it the tenant has at once."""


def tenant(database, name):
    """The numbers of a new tenant and of its project, as `Submission` takes them."""
    facts = {"max_queued": 999, "max_running": 999, "weight": 1, "max_record_bytes": 1 << 30, "keep_days": 30}
    with database.begin() as transaction:
        row = sa.insert(tables.tenant).values(public_id=f"tnt_{name}", name=name, created_at=tables.Now(), **facts)
        number = transaction.execute(row.returning(tables.tenant.c.id)).scalar_one()
        row = sa.insert(tables.project).values(
            public_id=f"prj_{name}", tenant_id=number, name=name, settings={}, created_at=tables.Now()
        )
        project = transaction.execute(row.returning(tables.project.c.id)).scalar_one()
    return {"tenant_id": number, "project_id": project}


@pytest.fixture
def shared(stack):
    """A worker with four slots, a reaper, and two tenants."""
    stack.start("worker", "--concurrency", str(SLOTS), BACKPROBE_WORKER_MEMORY_BYTES=str(MEMORY_BYTES))
    stack.start("reaper")
    return stack, tenant(stack.database, "greedy"), tenant(stack.database, "other")


def status_of(stack, public_id, tenant_id):
    with stack.database.read() as transaction:
        row = lifecycle.get(transaction, public_id, tenant_id=tenant_id)
    assert row is not None
    return row.status


def seconds_of(stack, who):
    """Seconds from a submit of this tenant to its result."""
    began = time.monotonic()
    public_id = stack.submit(GOOD, **who)
    stack.wait(lambda: status_of(stack, public_id, who["tenant_id"]) == "succeeded", "the other's run", WAIT_SECONDS)
    return time.monotonic() - began


def taken_by(stack, who):
    with stack.database.read() as transaction:
        mine = tables.run.c.tenant_id == who["tenant_id"]
        query = sa.select(tables.run.c.status, sa.func.count()).where(mine).group_by(tables.run.c.status)
        return dict(transaction.execute(query).all())


@pytest.mark.parametrize("thing", THINGS)
def test_another_tenants_runs_take_about_as_long_beside_one_that_fills_all_it_can(shared, thing):
    confined("namespace")
    stack, greedy, other = shared
    source, limits, runs = THINGS[thing]
    assert limits.promised_bytes <= tenant_memory_bytes(MEMORY_BYTES)
    for _ in range(2):
        seconds_of(stack, other)  # the first wait for the worker and its warm process
    quiet = [seconds_of(stack, other) for _ in range(RUNS)]
    for _ in range(2 * SLOTS):
        stack.submit(source, limits=limits, **greedy)
    stack.wait(lambda: taken_by(stack, greedy).get("running") == runs, "the greedy tenant's runs")
    beside = [seconds_of(stack, other) for _ in range(RUNS)]
    ratio = statistics.median(beside) / max(SLOWEST_QUIET_SECONDS, statistics.median(quiet))
    assert taken_by(stack, greedy) == {"running": runs, "queued": 2 * SLOTS - runs}
    assert ratio <= RATIO, (quiet, beside)
