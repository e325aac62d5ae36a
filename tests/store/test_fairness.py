"""Who is served next: shares among tenants by weight, nobody behind another's heap, and no priority waits for ever.

No clock decides here: where two moments matter they are written by hand.
"""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from store import tables
from store.runs import completion, lifecycle

MINUTE = timedelta(minutes=1)
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def to_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


@pytest.fixture
def tenant(database):
    """`tenant("b", weight=3)`: the numbers of a tenant and of its project, as `Submission` takes them."""

    def make_tenant(name, **facts):
        wide = {"max_queued": 999, "max_running": 999, "weight": 1, "max_record_bytes": 1 << 30, "keep_days": 30}
        with database.begin() as transaction:
            row = sa.insert(tables.tenant).values(
                public_id=f"tnt_{name}", name=name, created_at=tables.Now(), **(wide | facts)
            )
            number = transaction.execute(row.returning(tables.tenant.c.id)).scalar_one()
            row = sa.insert(tables.project).values(
                public_id=f"prj_{name}", tenant_id=number, name=name, settings={}, created_at=tables.Now()
            )
            project = transaction.execute(row.returning(tables.project.c.id)).scalar_one()
        return {"tenant_id": number, "project_id": project}

    return make_tenant


@pytest.fixture
def serve(database, claim, change):
    """`serve(n)`: one worker takes and ends n runs, one a minute; whose they were."""
    clock = [BEGIN]

    def end_runs(times):
        served = []
        for _ in range(times):
            held = claim()
            clock[0] += MINUTE
            change(held, claimed_at=to_text(clock[0]))
            assert completion.finish(database, held, completion.Ending(status="succeeded", exit_code=0), None, None)
            served.append(held.tenant_id)
        return served

    return end_runs


def test_runs_in_hand_are_shared_by_weight(submit, claim, tenant):
    heavy, light = tenant("heavy", weight=3), tenant("light", weight=1)
    for _ in range(16):
        submit(**light), submit(**heavy)
    taken = [claim().tenant_id for _ in range(16)]
    assert (taken.count(heavy["tenant_id"]), taken.count(light["tenant_id"])) == (12, 4)
    for n in range(1, 17):  # at no time is one of them further from its share than by one run
        assert abs(taken[:n].count(light["tenant_id"]) - n / 4) <= 1


def test_late_runs_do_not_wait_for_the_heap_of_another_tenant(submit, serve, tenant):
    first, second = tenant("first"), tenant("second")
    for _ in range(30):
        submit(**first)
    assert serve(5) == [first["tenant_id"]] * 5
    for _ in range(4):
        submit(**second)
    late = serve(8)
    assert late == [second["tenant_id"], first["tenant_id"]] * 4
    assert serve(3) == [first["tenant_id"]] * 3


def test_many_tenants_are_served_in_turn(submit, serve, tenant):
    some = [tenant(f"t{n}") for n in range(6)]
    for n, each in enumerate(some):
        for _ in range(3 + 5 * n):
            submit(**each)
    served = serve(18)
    for turn in range(3):
        assert sorted(served[6 * turn : 6 * turn + 6]) == sorted(each["tenant_id"] for each in some)


def test_a_share_that_is_full_leaves_room_to_others(submit, claim, tenant):
    narrow, wide = tenant("narrow", max_running=2, weight=50), tenant("wide")
    for _ in range(5):
        submit(**narrow), submit(**wide)
    taken = [claim().tenant_id for _ in range(7)]
    assert (taken.count(narrow["tenant_id"]), taken.count(wide["tenant_id"])) == (2, 5)
    assert claim() is None


@pytest.mark.parametrize("priority", [0, 1, 5, 9])
def test_a_step_of_priority_is_a_minute_of_waiting(submit, database, priority):
    run = submit(priority=priority)
    with database.read() as reading:
        row = reading.execute(
            sa.select(tables.run.c.queued_at, tables.run.c.rank_at).where(tables.run.c.public_id == run.id)
        ).one()
    queued, rank = (datetime.fromisoformat(value) for value in row)
    assert rank - queued == priority * MINUTE


def test_the_last_priority_is_served_however_much_of_the_first_keeps_coming(submit, claim, change):
    patient = submit(priority=9)
    change(patient, rank_at=to_text(BEGIN + 9 * MINUTE))
    served = []
    for minute in range(12):  # a worker that ends one a minute, and one of the first priority that comes each minute
        urgent = submit(priority=0)
        change(urgent, rank_at=to_text(BEGIN + minute * MINUTE + timedelta(seconds=1)))
        served.append(claim().public_id)
    assert served.index(patient.id) == 9


def test_priority_is_of_a_tenant_s_own_runs_and_takes_nothing_from_others(submit, claim, tenant):
    modest, pushing = tenant("modest"), tenant("pushing")
    for _ in range(3):
        submit(priority=9, **modest), submit(priority=0, **pushing)
    taken = [claim().tenant_id for _ in range(6)]
    assert [taken[n : n + 2].count(modest["tenant_id"]) for n in (0, 2, 4)] == [1, 1, 1]


def test_a_run_that_is_given_back_keeps_its_place_behind_its_pause(submit, claim, database, change):
    first, second = submit(), submit()
    held = claim()
    assert held.public_id == first.id
    assert lifecycle.release(database, held) == "queued"
    assert claim().public_id == first.id
    assert claim().public_id == second.id
