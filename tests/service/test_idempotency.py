"""A request that is sent again has one effect: on every POST, on both databases, also when two come at once."""

from __future__ import annotations

import threading

import pytest

BODY = {"source": "x = 1\n"}


def post(site, key, path="/v1/runs", status=202, **more):
    answer = site.app.test_client().post(path, headers={"Idempotency-Key": key}, **more)
    assert answer.status_code == status, answer.text
    return answer


def test_the_same_request_makes_one_run_and_shows_it_as_it_is_now(site, samples):
    first = post(site, "a", json={"source": samples.TUTORIAL})
    again = post(site, "a", json={"source": samples.TUTORIAL})
    assert first.json["id"] == again.json["id"]
    assert (first.headers.get("Idempotent-Replayed"), again.headers["Idempotent-Replayed"]) == (None, "true")
    site.finish(first.json["id"], samples.tutorial())
    later = post(site, "a", status=200, json={"source": samples.TUTORIAL})
    assert (later.json["id"], later.json["status"]) == (first.json["id"], "succeeded")
    assert len(site.client.get("/v1/runs").json["items"]) == 1


def test_another_body_or_address_with_the_same_key_is_refused(site):
    run = post(site, "b", json=BODY).json["id"]
    refused = post(site, "b", status=422, json={"source": "x = 2\n"}).json
    assert (refused["code"], refused["errors"][0]["header"]) == ("idempotency-mismatch", "Idempotency-Key")
    assert post(site, "b", f"/v1/runs/{run}/cancel", 422).json["code"] == "idempotency-mismatch"
    assert len(site.client.get("/v1/runs").json["items"]) == 1


def test_another_query_with_the_same_key_is_refused(site, samples):
    from backprobe.record import dumps
    from service.api.records.record_file import MEDIA

    record = {"data": dumps(samples.tutorial()), "content_type": MEDIA}
    first = post(site, "q", "/v1/records?label.a=1&label.b=2", **record).json
    assert first["labels"] == {"a": "1", "b": "2"}
    assert post(site, "q", "/v1/records?label.b=2&label.a=1", **record).json["id"] == first["id"]
    for query in ("?label.a=2&label.b=2", "?label.a=1", ""):
        assert post(site, "q", f"/v1/records{query}", 422, **record).json["code"] == "idempotency-mismatch"
    post(site, "r", json=BODY)
    assert post(site, "r", "/v1/runs?include=findings", 422, json=BODY).json["code"] == "idempotency-mismatch"


def test_a_key_of_the_release_before_is_still_good(site):
    """Its digest had no query, and was the same as it is now where there is none."""
    import hashlib

    from service.web.idempotency import digest_of_request

    with site.app.test_request_context("/v1/runs", method="POST"):
        assert digest_of_request() == hashlib.sha256(b"POST /v1/runs\0").digest()


def test_a_refusal_is_not_kept_so_the_request_can_be_mended(site):
    run = site.submit()
    assert post(site, "c", f"/v1/runs/{run}/judge", 409).json["code"] == "run-not-ended"
    site.client.post(f"/v1/runs/{run}/cancel")
    assert post(site, "c", f"/v1/runs/{run}/judge", 410).json["code"] == "record-expired"
    assert post(site, "c", json=BODY).json["status"] == "queued"


def test_cancel_and_judge_take_a_key_too(site):
    from store.tables import run as runs_table

    run = site.finished()
    for name, status in (("judge", 202), ("cancel", 200)):
        first = post(site, name, f"/v1/runs/{run}/{name}", status)
        again = post(site, name, f"/v1/runs/{run}/{name}", status)
        assert (first.json["version"], again.headers["Idempotent-Replayed"]) == (again.json["version"], "true")
    with site.context.database.read() as transaction:
        assert transaction.execute(runs_table.select()).one().judge_due_at is not None


def test_a_key_is_made_once_and_its_secret_shown_once(site):
    asked = {"name": "ci", "scopes": ["read"]}
    first = post(site, "d", "/v1/keys", 201, json=asked).json
    again = post(site, "d", "/v1/keys", 201, json=asked).json
    assert first["secret"]
    assert (again["id"], again["secret"]) == (first["id"], None)
    assert len(site.client.get("/v1/keys").json["items"]) == 1


def test_eight_at_once_make_one_run(site):
    answers = []

    def send():
        answers.append(site.app.test_client().post("/v1/runs", json=BODY, headers={"Idempotency-Key": "e"}))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.json["id"] for answer in answers if answer.status_code == 202}) == 1
    assert len(site.client.get("/v1/runs").json["items"]) == 1


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "x" * 256, "\x7f"])
def test_a_key_that_is_none_is_refused(plain_site, key):
    refused = post(plain_site, key, status=422, json=BODY).json
    assert (refused["code"], refused["errors"][0]["header"]) == ("invalid-request", "Idempotency-Key")


def test_every_post_takes_one(plain_site):
    document = plain_site.client.get("/openapi.json").json
    for path, item in document["paths"].items():
        if "post" in item:
            assert "Idempotency-Key" in {parameter["name"] for parameter in item["post"]["parameters"]}, path
