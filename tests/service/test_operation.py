"""Workers, queues and usage: a tenant sees its own, the operator all, and nobody else's machine is named."""

from __future__ import annotations

import datetime

import pytest


@pytest.fixture
def tenant(site):
    """The headers of a key of another tenant than the operator's, which may do all in it."""
    from service.auth.caller import digest_of, new_key
    from store.access import keys, tenants
    from store.database.ids import new_id

    secret, prefix = new_key()
    digest = digest_of(secret, site.context.settings.secret)
    with site.context.database.begin() as transaction:
        number = tenants.create(transaction, new_id("tnt"))
        new = keys.NewKey(name="t", prefix=prefix, digest=digest, scopes=("admin",), created_by="test")
        keys.create(transaction, new, tenant_id=number)
    return {"Authorization": f"Bearer {secret}"}


def of_cpu(answer):
    return next(queue for queue in answer.json["queues"] if queue["queue"] == "cpu")


def test_the_operator_sees_all_queues_and_a_tenant_its_own(site, tenant):
    from store.runs import lifecycle as runs

    site.submit()
    site.submit()
    site.client.post("/v1/runs", json={"source": "x = 1\n"}, headers=tenant)
    assert runs.claim(site.context.database, site.worker()) is not None
    all_of_it, own = site.client.get("/v1/queue"), site.client.get("/v1/queue", headers=tenant)
    assert (all_of_it.json["of"], own.json["of"]) == ("service", "tenant")
    assert of_cpu(all_of_it)["queued"] + of_cpu(all_of_it)["running"] == 3
    assert of_cpu(own)["queued"] + of_cpu(own)["running"] == 1
    assert [queue["queue"] for queue in own.json["queues"]] == ["cpu", "gpu"]


def test_a_key_of_one_project_sees_what_waits_in_it(site):
    asked = {"name": f"queue {datetime.datetime.now(datetime.UTC)}"}
    project = site.client.post("/v1/projects", json=asked).json["id"]
    key = site.client.post("/v1/keys", json={"name": "k", "scopes": ["read"], "project": project}).json["secret"]
    site.submit()
    site.submit(project=project)
    answer = site.client.get("/v1/queue", headers={"Authorization": f"Bearer {key}"})
    assert (answer.json["of"], of_cpu(answer)["queued"]) == ("project", 1)
    used = site.client.get("/v1/usage", headers={"Authorization": f"Bearer {key}"}).json
    assert used["total"]["runs"] == 1


def test_a_worker_is_named_to_the_operator_only(site, tenant):
    nodes = {site.worker(levels=("none", "process"), slots=3, busy=1) for _ in range(3)}
    told = site.client.get("/v1/workers").json["items"]
    assert {worker["node"] for worker in told} == nodes
    assert {(worker["slots"], worker["busy"], tuple(worker["levels"])) for worker in told} == {
        (3, 1, ("none", "process"))
    }
    theirs = site.client.get("/v1/workers", headers=tenant)
    assert [worker["id"] for worker in theirs.json["items"]] == [worker["id"] for worker in told]
    assert {(worker["node"], worker["busy"]) for worker in theirs.json["items"]} == {(None, None)}
    assert not [node for node in nodes if node in theirs.text]
    page = site.client.get("/v1/workers?limit=2").json
    rest = site.client.get(f"/v1/workers?limit=2&cursor={page['next_cursor']}").json
    assert [worker["id"] for worker in (*page["items"], *rest["items"])] == [worker["id"] for worker in told]
    assert rest["next_cursor"] is None


def test_a_worker_whose_sandbox_does_not_work_says_so_and_to_the_operator_why(site, tenant):
    why = "the warm process did not start: torch finds no CUDA device here"
    site.worker(levels=(), queues=("gpu",), probe={"sandbox": "broken", "why": why})
    site.worker(levels=(), probe={"sandbox": "starting", "why": None})
    site.worker(probe={"sandbox": "ready", "why": None})
    said = {(worker["sandbox"], worker["broken"]) for worker in site.client.get("/v1/workers").json["items"]}
    assert said == {("broken", why), ("starting", None), ("ready", None)}
    theirs = site.client.get("/v1/workers", headers=tenant).json["items"]
    assert {(their["sandbox"], their["broken"]) for their in theirs} == {
        ("broken", None),
        ("starting", None),
        ("ready", None),
    }


def test_usage_is_told_by_day_and_of_the_tenant_alone(site, tenant, samples):
    from store.tables import run

    first, second = (site.finished(wall_seconds=0.25) for _ in range(2))
    site.submit()
    with site.context.database.begin() as transaction:
        for run_id, at in ((first, "2026-01-31T23:59:59.999Z"), (second, "2026-02-01T00:00:00.000Z")):
            transaction.execute(run.update().where(run.c.public_id == run_id).values(created_at=at))
        transaction.execute(run.update().where(run.c.public_id == second).values(queue="gpu"))
    told = site.client.get("/v1/usage?from=2026-01-31&to=2026-02-01").json
    days = [(day["day"], day["runs"], day["wall_seconds"], day["gpu_seconds"]) for day in told["items"]]
    assert days == [("2026-01-31", 1, 0.25, 0.0), ("2026-02-01", 1, 0.25, 0.25)]
    snapshots = len(samples.tutorial().snapshots)
    assert (told["total"]["runs"], told["total"]["snapshots"]) == (2, 2 * snapshots)
    assert told["total"]["record_bytes"] > 200
    assert len(site.client.get("/v1/usage?from=2026-02-01&to=2026-02-01").json["items"]) == 1
    assert site.client.get("/v1/usage").json["total"]["runs"] == 1
    assert site.client.get("/v1/usage?from=2026-01-31&to=2026-02-01", headers=tenant).json["items"] == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("from=2026-01-01&to=2026-04-02", 200),
        ("from=2026-01-01&to=2026-04-03", 422),
        ("to=0001-01-01", 200),
        ("from=2026-02-30", 422),
        ("from=yesterday", 422),
        ("from=2026-05-01&to=2026-04-01", 200),
    ],
)
def test_usage_is_asked_for_by_days_and_not_too_many(plain_site, asked, status):
    answer = plain_site.client.get(f"/v1/usage?{asked}")
    assert answer.status_code == status, answer.text
    assert status == 422 or answer.json["total"]["runs"] == 0


def test_the_index_leads_to_every_list(plain_site):
    told = plain_site.client.get("/v1").json["links"]
    assert {"openapi", "runs", "findings", "keys", "audit-log", "workers"} <= set(told)
    document = plain_site.client.get("/openapi.json").json
    for name, address in told.items():
        status = plain_site.client.get(address).status_code
        assert status == 200 or (name, status) in {("compare", 422), ("audits/trend", 422)}, name
        assert address in document["paths"] or name in {"openapi", "reference"}
