"""Audits as NDJSON over HTTP, on both databases: lines that fail alone, uploads that break and go on."""

from __future__ import annotations

import io
import json
import threading
import time
import tracemalloc

import pytest
import sqlalchemy as sa

from store import tables
from store.audits import judging as audit_judging

MEDIA = "application/x-ndjson"
TEXT = {"source": "x = 1\n"}


def body(*items, **head):
    """NDJSON of these items; bytes go as they are."""
    lines = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in (head, *items)]
    return b"".join(line + b"\n" for line in lines)


@pytest.fixture
def send(site):
    """`send(data, status, key)`: the answer to an upload."""

    def send_upload(data, status=202, key=None, client=None, **more):
        headers = {"Content-Type": MEDIA} | ({} if key is None else {"Idempotency-Key": key}) | more.pop("headers", {})
        sent = {"data": data} if isinstance(data, bytes) else {"input_stream": data, **more}
        answer = (client or site.client).post("/v1/audits", headers=headers, **sent)
        assert answer.status_code == status, answer.text
        return answer

    return send_upload


@pytest.fixture
def items_of(site):
    def load_items(audit):
        return list(map(json.loads, site.client.get(f"/v1/audits/{audit}/items?format=ndjson").text.splitlines()))

    return load_items


def broken(data, at):
    """A body that ends after `at` bytes, where its length says more: the connection has gone."""
    return {"data": io.BytesIO(data[:at]), "environ_overrides": {"CONTENT_LENGTH": str(len(data))}}


def audits(site):
    return site.client.get("/v1/audits").json["items"]


def test_each_line_is_an_item_and_a_bad_line_fails_alone(site, send, items_of, samples):
    known = site.finished()
    sent = body(
        {"custom_id": "a", "source": samples.TUTORIAL, "priority": 1},
        {"custom_id": "b", "run": known},
        b"",
        {"custom_id": "typo", "source": "x = ("},
        b'{"custom_id": "cut',
        {"custom_id": "more", **TEXT, "sauce": 1},
        {"custom_id": "a", **TEXT},
        {"custom_id": "long", "source": "#" * (2 << 20)},
        b"\xff\xfe",
        {"custom_id": "gone", "run": "run_01JD8PZ4T8W2K5C7Q9R3M6X1BA"},
        {**TEXT},
        b"[]",
        name="nightly",
        labels={"commit": "9f2c1ab"},
        defaults={"seed": 7},
    )[:-1]
    told = send(sent).json
    assert (told["name"], told["status"], told["labels"]) == ("nightly", "running", {"commit": "9f2c1ab"})
    assert (told["items"]["total"], told["items"]["running"]) == (11, 2)
    items = items_of(told["id"])
    assert [item["custom_id"] for item in items] == [
        "a", "b", "typo", None, "more", None, None, None, "gone", None, None,
    ]  # fmt: skip
    said = [None if item["problem"] is None else (item["problem"]["line"], item["problem"]["code"]) for item in items]
    assert said == [
        None, None, (5, "syntax-error"), (6, "malformed-request"), (7, "invalid-request"), (8, "invalid-request"),
        (9, "too-large"), (10, "malformed-request"), (11, "not-found"), (12, "invalid-request"), (13, "invalid-request"),
    ]  # fmt: skip
    places = {item["problem"]["line"]: item["problem"]["errors"] for item in items if item["problem"]}
    assert places[5][0]["pointer"] == "#/source"
    assert places[7][0] == {
        "pointer": "#/sauce",
        "code": "unknown-field",
        "detail": "There is no such field. Did you mean `source`?",
    }
    assert (places[8][0]["pointer"], places[8][0]["code"]) == ("#/custom_id", "doubled-custom-id")
    assert places[12][0] == {"pointer": "#/custom_id", "code": "missing-field", "detail": "This field is needed."}
    run = site.client.get(f"/v1/runs/{items[0]['run']}").json
    assert (run["seed"], run["priority"], run["custom_id"]) == (7, 1, "a")
    site.finish(items[0]["run"], samples.tutorial())
    assert audit_judging.settle(site.context.database) == (told["id"],)
    counts = site.client.get(told["links"]["self"]).json["items"]
    assert (counts["not_run"], counts["warn"], counts["total"]) == (9, 2, 11)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", "malformed-request"),
        (b"\n\n", "malformed-request"),
        (b"{\n", "malformed-request"),
        (b'{"name": 3}\n{}\n', "invalid-request"),
        (b'{"items": []}\n', "invalid-request"),
        (b'{"policy": "pol_01JD8PZ4T8W2K5C7Q9R3M6X1BA"}\n', "not-found"),
        (b"{}\n", "invalid-request"),
    ],
)
def test_a_first_line_that_is_no_audit_is_refused_whole(site, send, sent, code):
    answer = send(sent, {"malformed-request": 400, "invalid-request": 422, "not-found": 404}[code], key="k")
    assert answer.json["code"] == code
    assert [audit["status"] for audit in audits(site)] == (["canceled"] if sent == b"{}\n" else [])
    assert send(body({"custom_id": "a", **TEXT}), key="k").json["items"]["total"] == 1


def test_a_broken_upload_goes_on_where_it_stood(site, send, items_of):
    known = site.finished()
    whole = body({"custom_id": "first", **TEXT}, *({"custom_id": f"{n}", "run": known} for n in range(1300)))
    send(**broken(whole, whole.index(b'"custom_id": "700"')), status=400, key="k")
    (open_,) = audits(site)
    assert (open_["status"], open_["items"]["total"], open_["verdict"]) == ("open", 500, None)
    assert audit_judging.settle(site.context.database) == ()
    send(**broken(whole, whole.index(b'"custom_id": "1250"')), status=400, key="k")
    assert [audit["items"]["total"] for audit in audits(site)] == [1000]
    told = send(whole, key="k")
    assert (told.json["id"], told.json["status"], told.json["items"]["total"]) == (open_["id"], "running", 1301)
    assert "Idempotent-Replayed" not in told.headers
    assert [item["custom_id"] for item in items_of(open_["id"])] == ["first", *map(str, range(1300))]
    again = send(whole, key="k")
    assert (again.json["id"], again.headers["Idempotent-Replayed"]) == (open_["id"], "true")
    assert len(site.client.get("/v1/runs").json["items"]) == 2
    log = site.client.get(f"/v1/audit-log?object={open_['id']}").json["items"]
    assert [entry["action"] for entry in log] == ["audit.create"]


def test_another_upload_under_the_same_key_is_refused_and_changes_nothing(site, send):
    item_a, item_b, item_c = ({"custom_id": name, **TEXT} for name in "abc")
    first = send(body(item_a, item_b), key="k").json
    for other in (body(item_a), body(item_b, item_a), body(item_a, item_b, item_c), body(item_a, item_b, name="other")):
        assert send(other, 422, key="k").json["code"] == "idempotency-mismatch"
    json_ = site.client.post("/v1/audits", json={"items": [item_a]}, headers={"Idempotency-Key": "k"})
    assert (json_.status_code, json_.json["code"]) == (422, "idempotency-mismatch")
    assert site.client.post("/v1/runs", json=TEXT, headers={"Idempotency-Key": "run"}).status_code == 202
    assert send(body(item_a, item_b), 422, key="run").json["code"] == "idempotency-mismatch"
    assert [told["id"] for told in audits(site)] == [first["id"]]
    assert send(body(item_a, item_b), key="k").json["items"]["total"] == 2


def test_a_key_of_one_project_cannot_go_on_with_the_upload_of_another(site, send):
    project = site.client.post("/v1/projects", json={"name": "theirs"}).json["id"]
    asked = {"name": "ci", "scopes": ["read", "audits:write"], "project": project}
    limited = {"Authorization": f"Bearer {site.client.post('/v1/keys', json=asked).json['secret']}"}
    whole = body({"custom_id": "a", **TEXT})
    told = send(whole, key="k").json
    refused = send(whole, 422, key="k", headers=limited)
    assert (refused.json["code"], told["id"] in refused.text) == ("idempotency-mismatch", False)


def test_without_a_key_an_upload_that_breaks_is_canceled_with_its_runs(site, send):
    known = site.submit()
    whole = body({"custom_id": "a", **TEXT}, *({"custom_id": f"{n}", "run": known} for n in range(600)))
    send(**broken(whole, len(whole) - 5), status=400)
    (told,) = audits(site)
    assert (told["status"], told["items"]["total"]) == ("canceled", 500)
    statuses = {row["id"] == known: row["status"] for row in site.client.get("/v1/runs").json["items"]}
    assert statuses == {True: "queued", False: "canceled"}


def test_a_full_queue_stops_an_upload_and_it_goes_on_when_there_is_room(site, send, items_of):
    def may_queue(count):
        with site.context.database.begin() as transaction:
            transaction.execute(sa.update(tables.tenant).where(tables.tenant.c.id == 1).values(max_queued=count))

    whole = body(*({"custom_id": f"{n}", **TEXT} for n in range(5)))
    may_queue(3)
    try:
        for _ in range(2):
            full = send(whole, 429, key="k")
            assert (full.json["code"], full.headers["Retry-After"]) == ("quota-exceeded", "10")
            assert [(audit["status"], audit["items"]["total"]) for audit in audits(site)] == [("open", 3)]
        may_queue(5)
        told = send(whole, key="k").json
    finally:
        may_queue(10_000)
    assert [item["custom_id"] for item in items_of(told["id"])] == list("01234")
    assert len({item["run"] for item in items_of(told["id"])}) == 5


class Interrupted(io.BytesIO):
    """A body in whose middle something else happens."""

    def __init__(self, data, at, then):
        super().__init__(data)
        self.at, self.then = at, then

    def read(self, size: int | None = -1):
        if self.then is not None and self.tell() >= self.at:
            then, self.then = self.then, None
            thread = threading.Thread(target=then)
            thread.start()
            thread.join()
        return super().read(min(size, 1000) if size is not None and size > 0 else 1000)

    def readinto(self, target):
        piece = self.read(len(target))
        target[: len(piece)] = piece
        return len(piece)


def test_of_two_that_send_the_same_upload_at_once_each_piece_is_stored_once(site, send, items_of):
    known = site.finished()
    whole = body(*({"custom_id": f"{n}", "run": known} for n in range(1200)))

    def overtake(sent, status):
        return lambda: send(**sent, status=status, key="k", client=site.app.test_client())

    part = broken(whole, whole.index(b'"custom_id": "1100"'))
    slow = Interrupted(whole, whole.index(b'"custom_id": "600"'), overtake(part, 400))
    told = send(slow, 409, key="k")
    assert (told.json["code"], told.headers["Retry-After"]) == ("idempotency-in-flight", "1")
    slow = Interrupted(whole, whole.index(b'"custom_id": "1100"'), overtake(broken(whole, len(whole)), 202))
    told = send(slow, key="k")
    assert told.json["status"] == "running"
    assert [item["custom_id"] for item in items_of(told.json["id"])] == list(map(str, range(1200)))


def test_an_upload_of_an_audit_that_was_canceled_stores_no_more(site, send):
    known = site.finished()
    whole = body(*({"custom_id": f"{n}", "run": known} for n in range(900)))
    send(**broken(whole, whole.index(b'"custom_id": "600"')), status=400, key="k")
    (told,) = audits(site)
    site.client.post(f"/v1/audits/{told['id']}/cancel")
    assert send(whole, 200, key="k").json["status"] == "canceled"
    assert audits(site)[0]["items"]["total"] == 500


def test_an_upload_that_nobody_goes_on_with_is_canceled_after_a_day(site, send):
    whole = body({"custom_id": "a", **TEXT}, {"custom_id": "b", **TEXT})
    with site.context.database.begin() as transaction:
        transaction.execute(sa.update(tables.tenant).where(tables.tenant.c.id == 1).values(max_queued=1))
    try:
        send(whole, 429, key="k")
    finally:
        with site.context.database.begin() as transaction:
            transaction.execute(sa.update(tables.tenant).where(tables.tenant.c.id == 1).values(max_queued=10_000))
    audit_judging.settle(site.context.database)
    assert audits(site)[0]["status"] == "open"
    with site.context.database.begin() as transaction:
        transaction.execute(sa.update(tables.audit).values(created_at="2026-01-01T00:00:00.000Z"))
    audit_judging.settle(site.context.database)
    assert audits(site)[0]["status"] == "canceled"
    (run,) = site.client.get("/v1/runs").json["items"]
    assert run["status"] == "canceled"


def test_who_prefers_to_wait_is_answered_with_the_verdict(site, send):
    sent = body({"custom_id": "a", "run": site.finished()})
    began = time.monotonic()
    with site.judging():
        told = send(sent, 200, headers={"Prefer": "wait=20"})
    assert (told.json["status"], told.headers["Preference-Applied"]) == ("judged", "wait=20")
    assert time.monotonic() - began < 10
    path = told.headers["Location"]
    asked = site.client.get(path, headers={"Prefer": "wait=1"})
    assert (asked.json["verdict"], asked.headers["Preference-Applied"]) == ("passed", "wait=1")
    waits = send(body({"custom_id": "b", **TEXT}), 202, headers={"Prefer": "wait=1"})
    assert (waits.json["status"], waits.headers["Preference-Applied"]) == ("running", "wait=1")


def test_more_items_than_an_audit_may_have_are_refused_and_the_audit_is_canceled(site, send, monkeypatch):
    from service.api.audits import audit_lines

    assert audit_lines.MOST_LINES == 50_000
    monkeypatch.setattr(audit_lines, "MOST_LINES", 700)
    known = site.finished()
    answer = send(body(*({"custom_id": f"{n}", "run": known} for n in range(701))), 413, key="many")
    assert answer.json["code"] == "too-large"
    assert "700 items; line 702 is one more" in answer.json["detail"]
    assert "what it has stored goes when it is deleted" in answer.json["hint"]
    (told,) = audits(site)
    assert (told["status"], told["items"]["total"]) == ("canceled", 500)


def test_an_upload_of_bad_lines_is_refused_at_the_hundredth_and_lists_them(site, send):
    """60,000 such lines had held a thread until 50,000 of them were stored as items."""
    good = [json.dumps({"custom_id": f"{n}", **TEXT}).encode() for n in range(3)]
    lines = [b"{}", *good, b"x", b'{"custom_id": "typo", "source": "x = ("}', *good[:1], *[b"[]"] * 60_000]
    sent = b"\n".join(lines)
    for key in ("k", None):
        refused = send(sent, 422, key=key)
        told = refused.json
        assert told["code"] == "invalid-request"
        assert told["detail"] == (
            "100 of the first 105 lines are bad: the rest was not read, and the audit is canceled."
        )
        assert [error["line"] for error in told["errors"]] == [5, 6, *range(8, 106)]
        assert [error["code"] for error in told["errors"][:2]] == ["malformed-request", "syntax-error"]
        assert told["errors"][1]["detail"].startswith("typo.py, line 1: ")
        assert told["errors"][2]["detail"].startswith("#: ")
    assert [(audit["status"], audit["items"]["total"]) for audit in audits(site)] == [("canceled", 0)] * 2
    assert site.client.get("/v1/runs").json["items"] == []
    assert send(body({"custom_id": "a", **TEXT}), key="k").json["items"]["total"] == 1  # the key is free again


def test_a_hundred_names_that_are_taken_are_a_hundred_bad_lines_and_99_are_items(site, send, items_of):
    known = site.finished()

    def repeat_item(count):
        return body(*({"custom_id": "a", "run": known} for _ in range(count + 1)))

    told = send(repeat_item(99)).json
    assert [item["problem"] is None for item in items_of(told["id"])] == [True] + [False] * 99
    refused = send(repeat_item(100), 422).json
    assert (refused["code"], len(refused["errors"])) == ("invalid-request", 100)
    assert [(audit["status"], audit["items"]["total"]) for audit in audits(site)] == [
        ("canceled", 100),
        ("running", 100),
    ]


def test_an_upload_whose_refused_lines_take_long_is_refused_before_there_are_many(site, send, monkeypatch):
    from service.api.audits import bad_lines

    monkeypatch.setattr(bad_lines, "MOST_SECONDS", 0.0)
    unserved = {"custom_id": "a", **TEXT, "isolation": "gvisor"}
    told = send(body({"custom_id": "b", **TEXT}, unserved, {"custom_id": "c", **TEXT}), 422).json
    assert told["detail"].startswith("1 of the first 3 lines are refused, and took 0 s to look at: ")
    assert [(error["line"], error["code"]) for error in told["errors"]] == [(3, "isolation-unavailable")]
    assert [audit["status"] for audit in audits(site)] == ["canceled"]


def test_a_body_that_says_it_is_longer_than_256_mib_is_refused_before_it_is_read(plain_site):
    headers = {"Content-Type": MEDIA}
    answer = plain_site.client.post(
        "/v1/audits",
        input_stream=io.BytesIO(b"{}\n"),
        headers=headers,
        environ_overrides={"CONTENT_LENGTH": str((256 << 20) + 1)},
    )
    assert (answer.status_code, answer.json["code"]) == (413, "too-large")


def test_a_line_without_an_end_is_not_held_in_memory():
    from service.web.body_lines import lines_of

    class Endless:
        left = 64 << 20

        def read(self, size):
            self.left -= size
            return b"y" * size if self.left >= 0 else b""

    tracemalloc.start()
    try:
        lines = list(lines_of(Endless()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(line.number, line.raw) for line in lines] == [(1, None)]
    assert peak < 12 << 20


def test_a_bad_line_stores_a_refusal_and_not_itself(site, send, items_of):
    """Else a page of 1,000 such items were 4 GiB."""
    lines = [{"custom_id": f"a{n}", "source": "x = 1\n", f"{n}" + "k" * 1_000_000: 1} for n in range(3)]
    audit = send(body(*lines)).json["id"]
    items = items_of(audit)
    assert len(items) == 3
    assert all(item["problem"]["errors"][0]["code"] == "unknown-field" for item in items)
    assert len(json.dumps(items)) < 10_000
