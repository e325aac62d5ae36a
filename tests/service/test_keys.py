"""Keys: made once, stored as a hash, limited by scope, project and time; every write is in the audit log."""

from __future__ import annotations

import datetime
import re
import time

import pytest
import sqlalchemy as sa

from service.settings import RateLimits
from store.tables import api_key
from tests.support.waiting import wait_until

NOWHERE = {"Host": "backprobe.example"}


@pytest.fixture
def admin(site):
    """A key of the first tenant that may do all."""
    return create_key(site)["secret"]


def create_key(site, status=201, key=None, **body):
    asked = {"name": "ci", "scopes": ["admin"], **body}
    answer = site.client.post("/v1/keys", json=asked, headers=bearer(key) if key else {})
    assert answer.status_code == status, answer.text
    return answer.json


def bearer(key, **more):
    return {"Authorization": f"Bearer {key}", **more}


def ask(site, key, path, status=200, method="GET", **more):
    answer = site.client.open(path, method=method, headers=bearer(key), **more)
    assert answer.status_code == status, answer.text
    return answer


def test_a_key_opens_from_anywhere_and_is_shown_once(site):
    told = create_key(site, name="nightly")
    assert told["secret"].startswith(told["prefix"] + "_")
    assert site.client.get("/v1/runs", headers=bearer(told["secret"], **NOWHERE)).status_code == 200
    assert site.client.get("/v1/runs", headers=NOWHERE).status_code == 403
    listed = ask(site, told["secret"], "/v1/keys")
    assert told["secret"] not in listed.text
    assert [(key["id"], key["name"], key["created_by"]) for key in listed.json["items"]] == [
        (told["id"], "nightly", "local")
    ]


def test_the_database_holds_no_key(site, admin):
    with site.context.database.read() as transaction:
        row = transaction.execute(api_key.select()).one()
    assert admin not in str(row)
    assert admin.encode() not in bytes(row.hash)
    assert len(row.hash) == 32


def test_a_key_that_was_taken_back_opens_nothing(site, admin):
    other = create_key(site, key=admin)
    ask(site, other["secret"], "/v1/me")
    ask(site, admin, f"/v1/keys/{other['id']}", 204, "DELETE")
    assert ask(site, other["secret"], "/v1/me", 401).json["code"] == "unauthenticated"
    ask(site, admin, f"/v1/keys/{other['id']}", 404, "DELETE")
    ask(site, admin, "/v1/keys/nonsense", 404, "DELETE")


def test_a_key_ends_with_its_time(site, admin):
    later = create_key(site, key=admin, expires_at="2120-01-01T00:00:00+01:00")
    assert ask(site, later["secret"], "/v1/me").json["expires_at"] == "2119-12-31T23:00:00.000Z"
    with site.context.database.begin() as transaction:
        ended = {"expires_at": "2020-01-01T00:00:00.000Z"}
        transaction.execute(api_key.update().where(api_key.c.public_id == later["id"]).values(ended))
    ask(site, later["secret"], "/v1/me", 401)


def test_a_key_that_would_have_ended_already_is_not_made(site, admin):
    before = len(ask(site, admin, "/v1/keys").json["items"])
    refused = create_key(site, 422, key=admin, expires_at="2020-01-01T00:00:00+01:00")
    assert refused["detail"] == "2019-12-31T23:00:00.000Z is in the past: choose a later time."
    assert (refused["errors"][0]["pointer"], refused["errors"][0]["code"]) == ("#/expires_at", "in-the-past")
    assert len(ask(site, admin, "/v1/keys").json["items"]) == before


def test_the_last_use_of_a_key_is_listed_and_written_once_a_minute(make):
    site = make(rates=RateLimits(reads=0))
    admin = create_key(site)["secret"]
    used, unused = create_key(site, key=admin), create_key(site, key=admin)
    assert used["last_used_at"] is None
    written = []

    def note_statement(_connection, _cursor, statement, *_more):
        if statement.startswith("UPDATE api_key"):
            written.append(statement)

    def last_uses():
        return {key["id"]: key["last_used_at"] for key in ask(site, admin, "/v1/keys").json["items"]}

    wait_until(lambda: any(last_uses().values()))  # the administrator's: it is not written again while this test runs
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    sa.event.listen(site.context.database.engine, "before_cursor_execute", note_statement)
    try:
        ask(site, used["secret"], "/v1/me")
        wait_until(lambda: last_uses()[used["id"]])
        told = last_uses()
        for _ in range(5):
            ask(site, used["secret"], "/v1/me")
        assert last_uses() == told
    finally:
        sa.event.remove(site.context.database.engine, "before_cursor_execute", note_statement)
    assert datetime.datetime.fromisoformat(told[used["id"]]) >= before
    assert told[unused["id"]] is None
    assert len(written) == 1


def test_a_request_does_not_wait_for_the_write_of_the_last_use(make):
    site = make(api_key="k")
    secret, _ = site.make_key()
    with site.context.database.begin():  # the only writer of the process: another one waits for half a minute
        begun = time.monotonic()
        ask(site, secret, "/v1/me")
        assert time.monotonic() - begun < 15

    def last_used():
        return ask(site, secret, "/v1/keys").json["items"][0]["last_used_at"]

    wait_until(last_used)


@pytest.mark.parametrize("key", ["bp_", "bp_00000000_" + "A" * 43, "x" * 5000, "bp_0000000g_" + "A" * 43])
def test_what_is_no_key_is_401_in_one_shape(site, key):
    answer = site.client.get("/v1/runs", headers=bearer(key))
    assert (answer.status_code, answer.json["code"]) == (401, "unauthenticated")
    assert key[:20] not in answer.text or key == "bp_"


def test_a_key_with_another_ending_is_refused(site, admin):
    other = admin[:-1] + ("A" if admin[-1] != "A" else "B")
    ask(site, other, "/v1/me", 401)


def test_the_key_of_the_environment_still_opens_all(make):
    site = make(api_key="k")
    told = site.client.get("/v1/me", headers=bearer("k")).json
    assert (told["actor"], "admin" in told["scopes"]) == ("key:server", True)
    made_by_it = create_key(site, key="k", scopes=["read"])
    assert made_by_it["created_by"] == "key:server"
    assert site.client.get("/v1/runs", headers=bearer(made_by_it["secret"])).status_code == 200
    assert site.client.get("/v1/runs").status_code == 401


def test_every_operation_demands_its_scope(site, admin):
    """Generated from the document, so that a new operation cannot be forgotten."""
    document = site.client.get("/openapi.json").json
    nothing = create_key(site, key=admin, scopes=["metrics"])["secret"]
    tried = 0
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not path.startswith("/v1") or path == "/v1/me":
                continue
            (scope,) = operation["security"][1]["key"]
            address = path.replace("{run}", "run_00000000000000000000000000")
            address = re.sub("{(no|node|call|n)}", "0", address).replace("{table}", "sites").replace("{name}", "BP101")
            address = address.replace("{finding}", "f_00000000000000000000000000")
            address = re.sub(
                r"{(key|webhook|delivery|snippet|path|audit|policy)}", "key_00000000000000000000000000", address
            )
            refused = ask(site, nothing, address, 403, method.upper()).json
            assert refused["code"] == "scope-missing"
            assert scope in refused["detail"]
            assert (scope == "read") <= (method == "get"), (method, path)
            allowed = create_key(site, key=admin, scopes=[scope])["secret"]
            answer = site.client.open(address, method=method.upper(), headers=bearer(allowed))
            assert answer.status_code != 403, (method, path, answer.text)
            tried += 1
    assert tried >= 20


def test_nobody_makes_a_key_that_may_do_more_than_his_own(site, admin):
    keys = create_key(site, key=admin, scopes=["read", "keys:write"])["secret"]
    assert create_key(site, key=keys, scopes=["read"])["scopes"] == ["read"]
    assert create_key(site, 403, key=keys, scopes=["read", "runs:write"])["code"] == "scope-missing"
    assert create_key(site, 403, key=keys, scopes=["admin"])["code"] == "scope-missing"


def test_nobody_takes_back_a_key_that_may_do_more_than_his_own(site, admin):
    stronger = create_key(site, key=admin, scopes=["admin"])
    other = create_key(site, key=admin, scopes=["runs:write"])
    keys = create_key(site, key=admin, scopes=["read", "keys:write"])
    for key in (stronger, other):
        assert ask(site, keys["secret"], f"/v1/keys/{key['id']}", 403, "DELETE").json["code"] == "scope-missing"
        ask(site, key["secret"], "/v1/me")
    weaker = create_key(site, key=admin, scopes=["read"])
    ask(site, keys["secret"], f"/v1/keys/{weaker['id']}", 204, "DELETE")
    ask(site, keys["secret"], f"/v1/keys/{keys['id']}", 204, "DELETE")
    ask(site, admin, f"/v1/keys/{stronger['id']}", 204, "DELETE")


def test_a_key_does_not_outlive_the_key_that_made_it(site, admin):
    end, later, earlier = (f"2120-01-0{day}T00:00:00.000Z" for day in (2, 3, 1))
    keys = create_key(site, key=admin, scopes=["read", "keys:write"], expires_at=end)["secret"]
    refused = create_key(site, 422, key=keys, scopes=["read"], expires_at=later)
    assert [(error["pointer"], error["code"]) for error in refused["errors"]] == [
        ("#/expires_at", "outlives-its-maker")
    ]
    assert create_key(site, key=keys, scopes=["read"])["expires_at"] == end
    assert create_key(site, key=keys, scopes=["read"], expires_at=earlier)["expires_at"] == earlier
    assert create_key(site, key=admin, scopes=["read"])["expires_at"] is None


def test_a_key_of_one_project_sees_that_project_only(site, admin):
    from store.database.ids import new_id
    from store.tables import Now, project

    name = new_id("prj")
    with site.context.database.begin() as transaction:
        facts = {"public_id": name, "tenant_id": 1, "name": name, "settings": {}, "created_at": Now()}
        transaction.execute(project.insert().values(facts))
    other = site.submit()
    secret = create_key(site, key=admin, scopes=["read", "runs:write", "keys:write"], project=name)["secret"]
    own = ask(site, secret, "/v1/runs", 202, "POST", json={"source": "x = 1\n"}).json
    assert own["project"] == name
    assert [run["id"] for run in ask(site, secret, "/v1/runs").json["items"]] == [own["id"]]
    ask(site, secret, f"/v1/runs/{other}", 404)
    ask(site, secret, f"/v1/runs/{other}/cancel", 404, "POST")
    ask(site, secret, "/v1/keys", 403)
    assert ask(site, secret, "/v1/me").json["project"] == name
    assert create_key(site, 404, key=admin, project="prj_01JD8PZ4T8W2K5C7Q9R3M6X1BA")["code"] == "not-found"


def test_every_write_is_in_the_audit_log_with_its_request(site, admin):
    run = ask(site, admin, "/v1/runs", 202, "POST", json={"source": "x = 1\n"}).json["id"]
    sent = {**bearer(admin), "X-Request-Id": "request-of-cancel"}
    site.client.post(f"/v1/runs/{run}/cancel", headers=sent)
    entries = ask(site, admin, f"/v1/audit-log?object={run}").json["items"]
    assert [entry["action"] for entry in entries] == ["run.cancel", "run.submit"]
    actor = ask(site, admin, "/v1/me").json["actor"]
    assert {entry["actor"] for entry in entries} == {actor}
    assert entries[0]["request_id"] == "request-of-cancel"
    refused = site.client.post("/v1/runs/run_00000000000000000000000000/cancel", headers=bearer(admin))
    assert refused.status_code == 404
    assert ask(site, admin, "/v1/audit-log?object=run_00000000000000000000000000").json["items"] == []
    page = ask(site, admin, "/v1/audit-log?limit=1").json
    later = ask(site, admin, f"/v1/audit-log?limit=1&cursor={page['next_cursor']}").json
    assert page["items"][0] != later["items"][0]


def test_no_key_stands_in_a_log_line_or_an_error(site, admin, caplog):
    for path in ("/v1/runs?x=1", "/v1/runs/nonsense", "/nowhere", f"/v1/runs/{admin[:0]}"):
        answer = site.client.get(path, headers=bearer(admin))
        assert admin not in answer.text
        assert admin not in str(answer.headers)
    assert admin not in caplog.text
