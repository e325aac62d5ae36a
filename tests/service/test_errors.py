"""Every error has one shape: unknown routes, wrong methods and our own faults too."""

from __future__ import annotations

import logging

import pytest
from markupsafe import escape

from service.problems.catalogue import BY_STATUS, KINDS

FIELDS = {"type", "title", "status", "detail", "code", "hint", "instance", "request_id", "errors"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/v1/nowhere", 404, "not-found"),
        ("GET", "/v1/runs/", 404, "not-found"),
        ("GET", "/static/nothing.css", 404, "not-found"),
        ("GET", "/v1/runs/nothing", 404, "not-found"),
        ("GET", "/v1/runs/run_00000000000000000000000000/tensors", 404, "not-found"),
        ("GET", "/v1/runs/run_00000000000000000000000000/tensors/x", 404, "not-found"),
        ("GET", "/v1/runs/run_00000000000000000000000000/tensors/99999999999999999999", 404, "not-found"),
        ("POST", "/v1/runs/run_00000000000000000000000000/cancel", 404, "not-found"),
        ("DELETE", "/v1/runs", 405, "method-not-allowed"),
        ("PUT", "/healthz", 405, "method-not-allowed"),
        ("POST", "/runs", 405, "method-not-allowed"),
        ("GET", "/v1/runs?limit=0", 422, "invalid-request"),
        ("GET", "/v1/runs?limit=1001", 422, "invalid-request"),
        ("GET", "/v1/runs?limit=1.0", 422, "invalid-request"),
        ("GET", "/v1/runs?limit=%2B1", 422, "invalid-request"),
        ("GET", "/v1/runs?limit=", 422, "invalid-request"),
        ("GET", "/v1/runs?limit=1&limit=2", 422, "repeated-parameter"),
        ("GET", "/v1/runs?status=done", 422, "invalid-request"),
        ("GET", "/v1/runs?status=queued,,lost", 422, "invalid-request"),
        ("GET", "/v1/runs?created.gt=yesterday", 422, "invalid-request"),
        ("GET", "/v1/runs?created.gt=2026-01-01T00:00:00", 422, "invalid-request"),
        ("GET", "/v1/runs?created.gt=0001-01-01T00:00:00%2B23:59", 422, "invalid-request"),
        ("GET", "/v1/runs?created.lt=9999-12-31T23:59:59-23:59", 422, "invalid-request"),
        ("GET", "/v1/runs?created_gt=2026-01-01T00:00:00Z", 422, "invalid-request"),
        ("GET", "/v1/runs?queue=cpu%00", 422, "invalid-request"),
        ("GET", "/v1/runs?cursor=abc", 422, "bad-cursor"),
        ("GET", "/v1/runs?cursor=" + "a" * 600, 422, "invalid-request"),
        ("GET", "/runs?cursor=abc", 422, "bad-cursor"),
        ("GET", "/problems/nothing", 404, "not-found"),
        ("GET", "/rules/BP000", 404, "not-found"),
    ],
)
def test_an_error_is_problem_json(plain_site, method, path, status, code):
    answer = plain_site.client.open(path, method=method)
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json"), answer.text
    assert set(answer.json) == FIELDS
    assert answer.json["code"] == code
    assert answer.json["instance"] == path.partition("?")[0]
    assert ("Allow" in answer.headers) is (status == 405)
    assert "max-age" not in answer.headers["Cache-Control"]


@pytest.mark.parametrize("parameter", ["limit=0", "status=done", "colour=red", "cursor=a%00", "queue=%00"])
def test_a_bad_parameter_is_named(plain_site, parameter):
    told = plain_site.client.get(f"/v1/runs?{parameter}").json
    assert [place["parameter"] for place in told["errors"]] == [parameter.partition("=")[0]]


def test_a_fault_of_ours_tells_its_request_id_and_nothing_else(make, caplog):
    site = make()

    @site.app.get("/v1/broken")
    def broken():
        raise RuntimeError("run_away")

    answer = site.client.get("/v1/broken")
    assert answer.status_code == 500
    assert answer.mimetype == "application/problem+json"
    assert set(answer.json) == FIELDS
    assert answer.json["detail"] == f"Request {answer.headers['X-Request-Id']} failed on our side."
    assert "run_away" not in answer.text
    assert f"request {answer.json['request_id']} failed: GET '/v1/broken'" in caplog.text
    assert "RuntimeError: run_away" in caplog.text


def _unmigrated(transaction):
    transaction.exec_driver_sql("DROP VIEW IF EXISTS snapshot")
    transaction.exec_driver_sql("ALTER TABLE run RENAME TO run_away")


def test_a_database_that_is_not_migrated_is_unavailable(make, caplog):
    site = make()
    with site.context.database.begin() as transaction:
        _unmigrated(transaction)
    for answer in (site.client.get("/v1/runs"), site.post()):
        assert (answer.status_code, answer.json["code"]) == (503, "unavailable"), answer.text
        assert answer.headers["Retry-After"] == "5"
        assert set(answer.json) == FIELDS
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is None
    assert record.getMessage().startswith("the database is away, full, damaged or not migrated: ")
    assert "run" in record.getMessage()
    assert site.client.get("/runs", headers={"Accept": "text/html"}).status_code == 503


def test_a_database_that_is_away_is_unavailable(tmp_path, caplog):
    from service.app import create_app
    from service.settings import Settings

    environ = {
        "BACKPROBE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "BACKPROBE_SECRET": "0123456789abcdef" * 2,
    }
    app = create_app(Settings.from_environment(environ, tmp_path))
    client = app.test_client()
    answers = [client.get(path) for path in ("/v1/runs", "/v1/webhooks", "/readyz", "/metrics", "/v1/runs")]
    app.extensions["backprobe"].close()
    for answer in (answers[0], answers[-1]):
        assert (answer.status_code, answer.json["code"]) == (503, "unavailable"), answer.text
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "Connection refused" in line


def test_a_full_database_is_unavailable(make):
    site = make()
    with site.context.database.begin() as transaction:
        pages = transaction.exec_driver_sql("PRAGMA page_count").scalar_one()
        transaction.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    answers = [site.post({"source": "x = 1\n" * 20_000 + f"y = {number}\n"}) for number in range(3)]
    assert answers[-1].status_code == 503, answers[-1].text


def test_a_mistake_in_a_statement_is_a_fault_of_ours(make):
    site = make()

    @site.app.get("/v1/broken")
    def broken():
        with site.context.database.read() as transaction:
            transaction.exec_driver_sql("SELEKT 1")

    assert site.client.get("/v1/broken").status_code == 500


def test_a_home_that_cannot_be_written_is_not_ready(make, tmp_path):
    site = make()
    assert site.client.get("/readyz").json["home"] == "writable"
    assert not list(site.context.settings.store.home.glob(".writable*"))
    site.context.settings.store.home.rename(tmp_path / "elsewhere")
    gone = site.client.get("/readyz")
    assert (gone.status_code, gone.json["home"]) == (503, "not-writable")


def test_a_browser_gets_a_page_and_a_program_json(plain_site):
    page = plain_site.client.get("/nowhere", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.mimetype) == (404, "text/html")
    assert "Not found" in page.text
    assert plain_site.client.get("/nowhere", headers={"Accept": "*/*"}).mimetype == "application/problem+json"
    under = plain_site.client.get("/v1/nowhere", headers={"Accept": "text/html"})
    assert under.mimetype == "application/problem+json"


def test_every_code_has_a_page(plain_site):
    for code, kind in KINDS.items():
        page = plain_site.client.get(f"/problems/{code}")
        assert page.status_code == 200
        assert str(escape(kind.title)) in page.text
    assert set(BY_STATUS.values()) <= set(KINDS)


def test_a_hostile_address_is_not_echoed_as_markup(plain_site):
    page = plain_site.client.get("/<script>alert(1)</script>", headers={"Accept": "text/html"})
    assert "<script>" not in page.text
    page = plain_site.client.get("/runs/<script>alert(1)</script>", headers={"Accept": "text/html"})
    assert "<script>" not in page.text
