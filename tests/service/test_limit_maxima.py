"""What a client may ask for at most: the operator's maximum of each limit, and the memory of the largest live worker.

More is refused when it is sent, and the refusal names the maximum.
"""

import pytest
import sqlalchemy as sa

from service.settings import Settings
from store import tables
from store.admin import workers
from store.runs.limits import LIMITS, Limits, tenant_memory_bytes

GIB = 1 << 30
MAXIMA = {name: max(limit.least, limit.default // 2) for name, limit in LIMITS.items()}
"""Below each default, so that defaults must be lowered too."""


@pytest.fixture(scope="module")
def strict(module_make):
    """An application whose operator lowered every maximum."""
    return module_make(most_limits=MAXIMA)


def submitted(site, **limits):
    answer = site.client.post("/v1/runs", json={"source": "x = 1\n", "limits": limits})
    return answer.status_code, answer.json


def beat(site, memory_bytes):
    """One live worker, whose runs may have so much memory together."""
    node = workers.WorkerNode(
        id="test:1:memory",
        queues=("cpu",),
        levels=("none", "process", "namespace"),
        devices=("cpu",),
        probe={"memory_bytes": memory_bytes},
    )
    with site.context.database.begin() as transaction:
        workers.beat(transaction, node)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_above_the_operators_maximum_is_refused_with_the_maximum(strict, name):
    status, problem = submitted(strict, **{name: MAXIMA[name] + 1})
    assert (status, problem["code"]) == (422, "invalid-request")
    (error,) = problem["errors"]
    assert (error["pointer"], error["code"]) == (f"#/limits/{name}", "out-of-range")
    assert f"to {MAXIMA[name]} here" in error["detail"]
    assert submitted(strict, **{name: MAXIMA[name]})[0] == 202


def test_a_limit_that_nobody_named_is_at_most_the_maximum(strict):
    status, run = submitted(strict)
    assert status == 202
    assert {name: run["limits"][name] for name in MAXIMA} == MAXIMA


def test_who_asks_hears_the_maxima_that_hold(strict):
    told = strict.client.get("/v1/me").json["limits"]
    assert {name: told[name]["most"] for name in told} == MAXIMA
    assert all(limit["default"] <= limit["most"] for limit in told.values())


def test_an_item_of_an_audit_above_the_maximum_is_refused(strict):
    items = [{"custom_id": "large", "source": "x = 1\n", "limits": {"memory_bytes": MAXIMA["memory_bytes"] + 1}}]
    audit = strict.client.post("/v1/audits", json={"name": "a", "items": items}).json["id"]
    answer = strict.client.get(f"/v1/audits/{audit}/items")
    assert f"to {MAXIMA['memory_bytes']} here" in answer.text


def test_running_again_is_held_to_the_maxima_too(module_make):
    site = module_make()
    status, run = submitted(site, memory_bytes=4 * GIB)
    assert status == 202
    object.__setattr__(site.context.settings, "most_limits", MAXIMA)  # as after a start with other settings
    again = site.client.post(f"/v1/runs/{run['id']}/rerun", json={}).json
    assert {name: again["limits"][name] for name in MAXIMA} == MAXIMA
    answer = site.client.post(f"/v1/runs/{run['id']}/rerun", json={"limits": {"memory_bytes": 4 * GIB}})
    assert (answer.status_code, answer.json["errors"][0]["pointer"]) == (422, "#/limits/memory_bytes")


@pytest.mark.parametrize("name", LIMITS)
def test_each_maximum_is_a_setting(tmp_path, name):
    variable = f"BACKPROBE_MOST_{name.upper()}"
    home = {"BACKPROBE_HOME": str(tmp_path)}
    least = LIMITS[name].least
    settings = Settings.from_environment({**home, variable: str(least)})
    assert settings.most_limits == {other: limit.most for other, limit in LIMITS.items()} | {name: least}
    for wrong in ("-1", "many", str(LIMITS[name].most + 1), *([str(least - 1)] if least else [])):
        with pytest.raises(ValueError, match=variable):
            Settings.from_environment({**home, variable: wrong})


def test_more_memory_than_the_largest_worker_has_is_refused_with_the_most(both):
    beat(both, 8 * GIB)
    status, problem = submitted(both, memory_bytes=64 * GIB)
    assert (status, problem["errors"][0]["pointer"]) == (422, "#/limits/memory_bytes")
    most = int(problem["errors"][0]["detail"].rpartition("the most is ")[2].rstrip("."))
    assert Limits(memory_bytes=most).promised_bytes == 8 * GIB
    assert submitted(both, memory_bytes=most)[0] == 202
    status, problem = submitted(both, memory_bytes=most, disk_bytes=4 * GIB)
    assert status in (409, 422), "private folders are memory too"


def test_a_tenant_beside_others_may_ask_for_less_of_it(both):
    from store.access import tenants

    beat(both, 8 * GIB)
    with both.context.database.begin() as transaction:
        other = tenants.create(transaction, "other")
    most = tenant_memory_bytes(8 * GIB) - (Limits().promised_bytes - Limits().memory_bytes)
    assert submitted(both, memory_bytes=most + 1)[0] == 422
    assert submitted(both, memory_bytes=most)[0] == 202
    with both.context.database.begin() as transaction:
        gone = sa.update(tables.tenant).where(tables.tenant.c.id == other)
        transaction.execute(gone.values(disabled_at=tables.Now()))


def test_the_default_limits_are_never_refused_for_want_of_memory(both):
    beat(both, GIB // 2)
    assert submitted(both)[0] == 202
