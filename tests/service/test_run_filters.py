"""Filters of the list of runs, on both databases, and the indices that serve them."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from store import tables
from store.database.ids import new_id
from store.runs import lifecycle
from store.runs.reading.run_filter import RunFilter


@pytest.fixture
def list_runs(site):
    def get_ids(**query):
        answer = site.client.get(f"/v1/runs?{urlencode(query)}")
        assert answer.status_code == 200, answer.text
        return [row["id"] for row in answer.json["items"]]

    return get_ids


def test_runs_are_found_by_label_words_program_and_actor(site, list_runs):
    files = [{"path": "jobs/Train_50%.py", "text": "x = 1\n"}]
    labeled = site.post({"files": files, "labels": {"pr": "12", "team": "Vision"}}).json
    other = site.submit(labels={"pr": "13", "a.b": "50"})
    assert list_runs(**{"label.pr": "12"}) == [labeled["id"]]
    assert list_runs(**{"label.pr": "12", "label.team": "Vision"}) == [labeled["id"]]
    assert list_runs(**{"label.pr": "12", "label.team": "vision"}) == []
    assert list_runs(**{"label.a.b": "50"}) == [other]
    assert list_runs(**{"label.none": "x"}) == []
    assert list_runs(q="train_5") == list_runs(q="VISION") == list_runs(q="50%") == [labeled["id"]]
    assert list_runs(q="team") == [labeled["id"]]
    assert list_runs(q="pr") == [other, labeled["id"]]
    assert list_runs(q="t%e") == list_runs(q='"') == list_runs(q="{") == []
    assert list_runs(snippet=labeled["snippet"]) == [labeled["id"]]
    assert list_runs(snippet="snp_01JD8PZ4T8W2K5C7Q9R3M6X1BA") == []
    assert list_runs(actor="local", sort="-created_at") == [other, labeled["id"]]
    assert list_runs(actor="key:bp_1") == []
    page = site.client.get("/v1/runs?label.pr=12&limit=1").json
    assert page["next_cursor"] is None
    cursor = site.client.get("/v1/runs?actor=local&limit=1").json["next_cursor"]
    assert site.client.get(f"/v1/runs?actor=local&limit=1&label.pr=12&cursor={cursor}").json["code"] == "bad-cursor"


def test_runs_are_found_by_what_rules_say_of_them(site, list_runs):
    found, clean = site.finished(), site.submit()
    rule = "non-leaf-grad-read"
    assert list_runs(rule=rule) == list_runs(rule="BP101,BP102") == list_runs(level="warning") == [found]
    assert list_runs(rule=rule, level="note,warning") == [found]
    assert list_runs(rule=rule, level="error") == list_runs(rule="BP102") == []
    assert list_runs() == [clean, found]


@pytest.mark.parametrize(
    "change",
    [
        {"gone_at": "2026-11-22T00:00:00.000Z", "gone_ruleset": "rs_x"},
        {"suppressed": {"by": "comment"}},
        {"attempt": 2},
    ],
    ids=["gone", "suppressed", "of an attempt that is not the result"],
)
def test_a_finding_that_does_not_count_finds_no_run(site, list_runs, change):
    run = site.finished()
    assert list_runs(rule="BP101") == [run]
    with site.context.database.begin() as transaction:
        transaction.execute(tables.finding.update().values(change))
    assert list_runs(rule="BP101") == []


def test_the_bounds_of_a_time_are_not_in_it(site, list_runs):
    run = site.submit()
    at = site.client.get(f"/v1/runs/{run}").json["created_at"]
    assert list_runs(**{"created.gt": at}) == list_runs(**{"created.lt": at}) == []
    assert list_runs(**{"created.gt": "2026-01-01T00:00:00.000Z", "created.lt": "2999-01-01T00:00:00.000Z"}) == [run]


@pytest.mark.parametrize("name", ["label.", "label.a b", "label." + "x" * 65, "labels", "label"])
def test_a_label_with_no_name_of_one_is_refused_with_its_place(plain_site, name):
    answer = plain_site.client.get(f"/v1/runs?{urlencode({name: '1'})}")
    assert answer.status_code == 422
    assert answer.json["errors"][0]["parameter"] == name[:100]


def test_every_filter_is_served_by_an_index(site):
    """Of the run table nothing is read that no index led to, and nothing is sorted: pages cost what they show."""
    run, database = site.finished(), site.context.database
    snippet = site.client.get(f"/v1/runs/{run}").json["snippet"]
    audit = site.client.post("/v1/audits", json={"items": [{"custom_id": "a", "run": run}]}).json["id"]
    in_order = [
        RunFilter(), RunFilter(labels={"a": "b"}), RunFilter(words="x"), RunFilter(actor="local"), RunFilter(rule=["BP101"]),
        RunFilter(level=["error"]), RunFilter(created_after="2026-01-01T00:00:00.000Z"),
    ]  # fmt: skip
    cases = [("run_newest", which) for which in in_order]
    cases += [
        ("run_of_snippet" if database.sqlite else "Index", RunFilter(snippet=snippet)),
        ("SEARCH run USING INTEGER PRIMARY KEY" if database.sqlite else "Index", RunFilter(audit=audit)),
    ]
    plans: list[str] = []

    def explain(connection, _cursor, statement, parameters, _context, _many):
        own = connection.connection.cursor()
        own.execute(("EXPLAIN QUERY PLAN " if database.sqlite else "EXPLAIN ") + statement, parameters)
        plans.append("\n".join(str(row) for row in own.fetchall()))

    with database.begin() as transaction:
        if not database.sqlite:  # a table of one row is else scanned, or read whole and sorted
            for method in ("seqscan", "bitmapscan", "sort"):
                transaction.execute(sa.text(f"set local enable_{method} = off"))
        event.listen(transaction, "before_cursor_execute", explain)
        for index, which in cases:
            lifecycle.page(transaction, which, tenant_id=1, limit=10)
            assert index in plans[-1], (which, plans[-1])
            assert "Seq Scan on run" not in plans[-1], (which, plans[-1])
            assert "SCAN run" not in plans[-1], (which, plans[-1])
            assert database.sqlite or "Sort" not in plans[-1] or which.narrow, (which, plans[-1])


def test_a_watched_job_is_called_and_found_by_its_script(site, list_runs):
    named, silent = new_id("run"), new_id("run")
    site.client.put(f"/v1/runs/{named}", json={"environment": {"script": "train_gpt.py", "torch": "2.13.0"}})
    site.client.put(f"/v1/runs/{silent}", json={})
    assert site.client.get(f"/v1/runs/{named}").json["entry"] == "train_gpt.py"
    assert list_runs(q="GPT") == [named]
    assert list_runs(q="2.13") == []
    assert "<h1>train_gpt.py</h1>" in site.client.get(f"/runs/{named}").text
    assert "<h1>watched</h1>" in site.client.get(f"/runs/{silent}").text
    assert site.client.post(f"/v1/runs/{named}/rerun", json={}).status_code == 409


def test_the_oldest_runs_come_first_if_asked_page_by_page(site, list_runs):
    made = [site.submit() for _ in range(3)]
    assert list_runs(sort="created_at") == made
    first = site.client.get("/v1/runs?sort=created_at&limit=2").json
    rest = site.client.get(f"/v1/runs?sort=created_at&limit=2&cursor={first['next_cursor']}").json
    assert [run["id"] for run in first["items"] + rest["items"]] == made
    assert site.client.get(f"/v1/runs?limit=2&cursor={first['next_cursor']}").json["code"] == "bad-cursor"
