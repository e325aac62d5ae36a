"""`backprobe tenant`: what tenants may use, from the command line."""

from __future__ import annotations

import argparse

import pytest


@pytest.fixture
def tenant(plain_site, capsys):
    """Runs `backprobe tenant ...` on the site's home; exit code and what was printed."""
    from service.commands.tenants import tenant as add

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    home = str(plain_site.context.settings.store.home)

    def run(*words):
        arguments = parser.parse_args(["tenant", "--home", home, *words])
        code = arguments.run(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_quotas_are_changed_at_once_and_those_that_are_not_named_stay(plain_site, tenant):
    def allowed():
        return {name: told["allowed"] for name, told in plain_site.client.get("/v1/me").json["quotas"].items()}

    before = allowed()
    code, said, _ = tenant("set", "default", "--max-queued", "7", "--keep-days", "3")
    assert (code, "max_queued 7" in said, "keep_days 3" in said) == (0, True, True)
    assert allowed() == before | {"queued": 7}
    assert "max_queued 7  max_running 1000" in tenant("list")[1]
    entry = plain_site.client.get("/v1/audit-log").json["items"][0]
    assert (entry["action"], entry["detail"]) == ("tenant.change", {"max_queued": 7, "keep_days": 3})


def test_the_tenants_that_hold_slots_are_listed(plain_site, tenant):
    from store.runs import lifecycle

    plain_site.submit()
    worker = plain_site.worker(slots=4)
    while (claim := lifecycle.claim(plain_site.context.database, worker)) is not None:
        held = claim
    code, said, _ = tenant("slots")
    assert code == 0
    assert "  default  cpu  " in said
    assert " slots" in said
    lifecycle.release(plain_site.context.database, held)


def test_a_quota_of_none_closes_a_tenant(plain_site, tenant):
    tenant("set", "default", "--max-queued", "0")
    plain_site.worker()
    refused = plain_site.client.post("/v1/runs", json={"source": "x = 1"})
    assert (refused.status_code, refused.json["code"]) == (429, "quota-exceeded")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("absent", "--weight", "2"), "backprobe tenant list"),
        (("default",), "--max-queued"),
        (("default", "--max-running", "0"), "max_running takes 1 to"),
        (("default", "--weight", "1001"), "weight takes 1 to 1,000"),
        (("default", "--keep-days", "-1"), "keep_days takes 1 to"),
    ],
)
def test_what_cannot_be_set_is_said_and_changes_nothing(tenant, words, said):
    before = tenant("list")[1]
    code, out, err = tenant("set", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert tenant("list")[1] == before


def test_gpu_seconds_are_counted_by_month_and_refuse_the_gpu_only(site):
    from store import tables
    from store.access import tenants

    def allow(seconds):
        with site.context.database.begin() as transaction:
            tenants.change(transaction, 1, {"max_gpu_seconds": seconds})

    def ran(**facts):
        with site.context.database.begin() as transaction:
            transaction.execute(tables.run.update().values(**facts))

    site.worker(queues=("gpu",))
    gpu = {"source": "x = 1\n", "device": "cuda"}
    assert "gpu_seconds" not in site.client.get("/v1/me").json["quotas"]
    assert site.post(gpu).status_code == 202
    try:
        allow(10)
        ran(wall_seconds=9.5)
        assert site.post(gpu).status_code == 202
        ran(wall_seconds=6.0)
        assert site.client.get("/v1/me").json["quotas"]["gpu_seconds"] == {"used": 12, "allowed": 10}
        refused = site.post(gpu)
        assert (refused.status_code, refused.json["code"]) == (429, "quota-exceeded")
        assert "gpu_seconds: 12 GPU seconds this month, 10 allowed" in refused.json["detail"]
        items = {"items": [{"custom_id": "a", **gpu}]}
        assert site.client.post("/v1/audits", json=items).json["code"] == "quota-exceeded"
        assert site.post({"source": "x = 1\n"}).status_code == 202
        ran(created_at="2026-01-31T23:59:59.999Z")
        assert site.post(gpu).status_code == 202
    finally:
        with site.context.database.begin() as transaction:
            transaction.execute(tables.tenant.update().values(max_gpu_seconds=None))
