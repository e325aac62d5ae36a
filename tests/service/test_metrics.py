"""Metrics have true values, contain no data of a tenant, and are shown to the operator only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from store.admin.figures import MEANINGS

LONG_AGO = "2020-01-01T00:00:00.000Z"
LABELS = {"process", "queue", "level", "status", "result", "kind", "method", "route", "le"}
PROMISED = {
    "queue_depth",
    "queue_oldest_seconds",
    "runs_total",
    "run_seconds_bucket",
    "claims_total",
    "lease_expiries_total",
    "wakeups_total",
    "snapshots_written_total",
    "deliveries_total",
    "deliveries_dead",
    "workers",
    "worker_starts_total",
    "warm_process_losses_total",
    "oom_kills_total",
    "restarts_total",
    "tenants_busy",
    "tenant_slots_most",
    "http_requests_total",
    "http_request_seconds_bucket",
    "database_up",
}
OPERATING = (Path(__file__).parents[2] / "docs" / "operating" / "metrics-and-logs.md").read_text()


def scraped(client, **sent):
    """Value by name and labels."""
    answer = client.get("/metrics", **sent)
    assert (answer.status_code, answer.mimetype) == (200, "text/plain")
    families = text_string_to_metric_families(answer.text)
    return {
        (sample.name.removeprefix("backprobe_"), frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(found, name, **labels):
    return found[name, frozenset(labels.items())]


def key_of(site, scopes, tenant=None, project=None):
    from service.auth.caller import digest_of, new_key
    from store.access import keys, tenants
    from store.database.ids import new_id

    secret, prefix = new_key()
    with site.context.database.begin() as transaction:
        number = tenants.create(transaction, new_id("tnt")) if tenant else 1
        digest = digest_of(secret, site.context.settings.secret)
        new = keys.NewKey(name="m", prefix=prefix, digest=digest, scopes=scopes, created_by="test", project=project)
        keys.create(transaction, new, tenant_id=number)
    return {"Authorization": f"Bearer {secret}"}


def test_every_promised_metric_is_there_from_the_first_scrape_on_with_labels_of_ours(plain_site):
    plain_site.client.get("/healthz")
    found = scraped(plain_site.client)
    assert {name for name, _ in found} >= PROMISED
    assert {label for _, labels in found for label, _ in labels} == LABELS
    assert value(found, "workers", queue="gpu", level="gvisor") == 0


def test_what_waits_what_ended_and_who_works_is_counted(site, samples, monkeypatch):
    monkeypatch.setattr(site.context.metrics.tally, "since", LONG_AGO)
    before = scraped(site.client)
    run = site.finished(wall_seconds=0.25)
    moved_to(site, run, "2020-01-01T00:00:00.001Z")
    site.submit()
    site.worker(levels=("none", "process"))
    monkeypatch.setattr(site.context.metrics.tally, "since", LONG_AGO)
    after = scraped(site.client)

    def risen(name, **labels):
        return value(after, name, **labels) - value(before, name, **labels)

    assert value(after, "queue_depth", queue="cpu") == 1
    assert value(after, "workers", queue="cpu", level="process") == 1
    assert (risen("runs_total", status="succeeded"), risen("runs_total", status="lost")) == (1, 0)
    assert (risen("run_seconds_bucket", le="0.1"), risen("run_seconds_bucket", le="0.25")) == (0, 1)
    assert risen("run_seconds_sum") == 0.25
    assert risen("snapshots_written_total") == len(samples.tutorial().snapshots)
    assert risen("claims_total", result="finished") == 1


def test_starts_of_workers_and_kills_for_want_of_memory_are_counted_from_the_first_scrape_on(make):
    site = make()
    site.worker(probe={"counts": {"oom_kills": 7, "warm_losses": 1}})
    before = scraped(site.client)
    assert value(before, "worker_starts_total", queue="cpu") == 0
    site.worker(probe={"counts": {"oom_kills": 2, "warm_losses": 1}})
    after = scraped(site.client)
    assert value(after, "worker_starts_total", queue="cpu") == 1
    assert value(after, "oom_kills_total", queue="cpu") == 2
    assert value(after, "warm_process_losses_total", queue="cpu") == 1
    assert value(after, "oom_kills_total", queue="gpu") == 0


def test_children_of_serve_that_were_started_again_are_counted(make):
    site = make()
    assert value(scraped(site.client), "restarts_total", process="worker") == 0
    site.context.metrics.restarts = lambda: {"worker": 3}
    found = scraped(site.client)
    assert (value(found, "restarts_total", process="worker"), value(found, "restarts_total", process="reaper")) == (
        3,
        0,
    )


def test_the_tenants_that_hold_slots_are_counted_and_not_named(make):
    from store.runs import lifecycle

    site = make()
    site.submit()
    site.submit()
    other = key_of(site, ("admin",), tenant="other")
    site.client.post("/v1/runs", json={"source": "x = 1"}, headers=other)
    worker = site.worker(slots=4)
    for _ in range(3):
        assert lifecycle.claim(site.context.database, worker) is not None
    found = scraped(site.client)
    assert (value(found, "tenants_busy", queue="cpu"), value(found, "tenant_slots_most", queue="cpu")) == (2, 2)
    assert "tnt_" not in site.client.get("/metrics").text


def moved_to(site, run, at):
    """The run ended then, as did its attempt."""
    from store.tables import run as runs
    from store.tables import run_attempt

    with site.context.database.begin() as transaction:
        transaction.execute(runs.update().where(runs.c.public_id == run).values(finished_at=at))
        transaction.execute(run_attempt.update().values(ended_at=at))


def test_requests_are_counted_by_route_never_by_address(plain_site):
    client = plain_site.client
    before = scraped(client)
    for path in ("/v1/runs/run_01JD8PZ4T8W2K5C7Q9R3M6X1BA", "/nowhere/secret", "/v1/runs?limit=1", "/v1/runs?limit=0"):
        client.get(path)
    client.open("/v1/runs", method="BREW")
    found = scraped(client)

    def risen(**labels):
        key = ("http_requests_total", frozenset(labels.items()))
        return found.get(key, 0) - before.get(key, 0)

    assert risen(method="GET", route="/v1/runs/<run>", status="4xx") == 1
    assert risen(method="GET", route="none", status="4xx") == 1
    assert risen(method="GET", route="/v1/runs", status="2xx") == 1
    assert risen(method="GET", route="/v1/runs", status="4xx") == 1
    assert risen(method="other", route="none", status="4xx") == 1
    assert "secret" not in str(found)
    assert "01JD8PZ4" not in str(found)


def test_they_are_told_to_the_scope_metrics_of_the_first_tenant(site):
    ask = site.client.get
    assert ask("/metrics", headers=key_of(site, ("metrics",))).status_code == 200
    assert ask("/metrics", headers=key_of(site, ("admin",))).status_code == 200
    for headers in (key_of(site, ("read",)), key_of(site, ("admin",), tenant="other")):
        answer = ask("/metrics", headers=headers)
        assert (answer.status_code, answer.json["code"]) == (403, "scope-missing")
    assert ask("/v1/runs", headers=key_of(site, ("metrics",))).status_code == 403


def test_a_database_that_is_away_is_a_metric_and_the_rest_is_told(make, tmp_path):
    site = make()
    site.client.get("/healthz")
    for file in tmp_path.glob("home*/backprobe.db*"):
        file.write_bytes(b"")
    site.context.database.close()
    found = scraped(site.client)
    assert value(found, "database_up") == 0
    assert value(found, "http_requests_total", method="GET", route="/healthz", status="2xx") == 1


@pytest.mark.parametrize("word", sorted(set(re.findall(r"backprobe_([a-z_]+)", OPERATING))))
def test_what_the_alerts_ask_for_is_there(site, word):
    told = {name for name, _ in scraped(site.client)}
    other = "PostgreSQL" if site.context.database.sqlite else "SQLite"
    assert bool({word, f"{word}_bucket"} & told) == (f"({other})" not in MEANINGS.get(word, ""))
