"""The record as one file, out of the service and in again. On both databases."""

from __future__ import annotations

import msgspec
import pytest

from backprobe.record import BadRecord, dumps, loads
from backprobe.rules import judge
from store.recorders import record_uploads
from store.records import storage as records

MEDIA = "application/vnd.backprobe.record"


@pytest.fixture
def file(site):
    """`file(run, **headers)`: the answer with the record of a run, read to its end."""
    return lambda run, **headers: site.client.get(f"/v1/runs/{run}/record", headers=headers, buffered=True)


@pytest.fixture
def send(site):
    """`send(bytes, status)` to /v1/records."""

    def post_record(data, status=202, key=None, media=MEDIA, query=""):
        headers = {"Content-Type": media} | ({"Idempotency-Key": key} if key else {})
        answer = site.client.post(f"/v1/records{query}", data=data, headers=headers)
        assert answer.status_code == status, answer.text
        return answer

    return post_record


def test_the_file_of_a_run_is_its_record(site, samples, file):
    run = site.finished()
    answer = file(run)
    assert (answer.status_code, answer.mimetype) == (200, MEDIA)
    assert answer.headers["Content-Disposition"] == f"attachment; filename={run}.bprec"
    assert int(answer.headers["Content-Length"]) == len(answer.data)
    sent, found = samples.tutorial(), loads(answer.data)
    for table in ("tensors", "moments", "backward_calls", "bindings", "sources"):
        assert getattr(found, table) == getattr(sent, table)
    assert [(snapshot.tensor, snapshot.moment) for snapshot in found.snapshots] == [
        (snapshot.tensor, snapshot.moment) for snapshot in sent.snapshots
    ]
    assert [finding.fingerprint for finding in judge(found).findings] == [
        finding.fingerprint for finding in judge(sent).findings
    ]


def test_parts_of_the_file_and_a_copy_that_is_still_good(site, file, monkeypatch):
    run = site.finished()
    whole = file(run)
    part = file(run, Range="bytes=3-10")
    assert (part.status_code, part.data) == (206, whole.data[3:11])
    assert part.headers["Content-Range"] == f"bytes 3-10/{len(whole.data)}"
    none = file(run, Range=f"bytes={len(whole.data)}-")
    assert (none.status_code, none.json["code"]) == (416, "no-such-range")
    assert none.headers["Content-Range"] == f"bytes */{len(whole.data)}"
    monkeypatch.setattr(records, "load", None)  # it is not read for an answer without it
    same = file(run, **{"If-None-Match": whole.headers["ETag"]})
    assert (same.status_code, same.data) == (304, b"")


def test_what_has_no_file_says_why(site, file):
    waiting = file(site.submit())
    assert (waiting.status_code, waiting.json["code"]) == (409, "run-not-ended")


def test_a_run_without_a_record_has_no_file(site, file):
    run = site.submit()
    site.finish(run, None, status="lost", exit_code=None)
    answer = file(run)
    assert (answer.status_code, answer.json["code"]) == (404, "not-found")


def test_a_file_that_is_sent_becomes_a_run_that_a_worker_judges(site, samples, send):
    from workers.upkeep.rejudging import Rejudging

    answer = send(dumps(samples.tutorial()))
    told = answer.json
    assert answer.headers["Location"] == f"/v1/runs/{told['id']}"
    assert (told["origin"], told["status"], told["record"]["state"]) == ("uploaded", "succeeded", "whole")
    assert site.client.get(f"/v1/runs/{told['id']}/findings").json["items"] == []
    Rejudging(site.context.database).turn()
    (finding,) = site.client.get(f"/v1/runs/{told['id']}/findings").json["items"]
    assert finding["rule"]["code"] == "BP101"


def test_sent_again_it_is_stored_once(site, samples, send):
    data = dumps(samples.tutorial())
    first, second = send(data, key="one"), send(data, key="one")
    assert (second.json["id"], second.headers["Idempotent-Replayed"]) == (first.json["id"], "true")
    assert len(site.client.get("/v1/runs").json["items"]) == 1
    other = msgspec.structs.replace(samples.tutorial(), end=None)
    assert send(dumps(other), 422, key="one").json["code"] == "idempotency-mismatch"


@pytest.mark.parametrize("cut", ["nothing", "other bytes", "one byte wrong"])
def test_what_is_no_record_is_refused_and_nothing_is_stored(site, samples, send, cut):
    whole = dumps(samples.tutorial())
    data = {
        "nothing": b"",
        "other bytes": b"PK\x03\x04" + whole,
        "one byte wrong": whole[:40] + bytes([whole[40] ^ 255]) + whole[41:],
    }[cut]
    told = send(data, 422, key="mended-later").json
    assert (told["code"], told["errors"][0]["pointer"]) == ("bad-record", "#")
    assert site.client.get("/v1/runs").json["items"] == []
    send(whole, key="mended-later")


def test_a_file_that_was_cut_is_a_run_whose_record_is_partial(samples, send):
    whole = dumps(samples.tutorial())
    told = send(whole[: len(whole) // 2]).json
    assert (told["status"], told["error"]["code"], told["record"]["state"]) == ("failed", "record-cut", "partial")


def test_a_refusal_by_the_database_frees_the_key(site, samples, send, monkeypatch):
    def raise_bad_record(*_, **__):
        raise BadRecord("out-of-range", "a number does not fit its column")

    monkeypatch.setattr(record_uploads, "finish", raise_bad_record)
    data = dumps(samples.tutorial())
    with pytest.raises(BadRecord):
        record_uploads.upload(site.context.database, loads(data), None)
    assert send(data, 422, key="one").json["code"] == "bad-record"
    monkeypatch.undo()
    send(data, key="one")


def test_an_upload_whose_number_fits_no_column_leaves_no_run(site, samples, send):
    whole = samples.tutorial()
    moment = msgspec.structs.replace(whole.moments[0], step=2**40)
    broken = dumps(msgspec.structs.replace(whole, moments=(moment, *whole.moments[1:])))
    assert send(broken, 422, key="again").json["code"] == "bad-record"
    assert site.client.get("/v1/runs").json["items"] == []
    send(dumps(whole), key="again")


def test_a_body_of_another_type_or_size_is_refused(site, samples, send, monkeypatch):
    from service.api.records import record_file

    data = dumps(samples.tutorial())
    answer = send(data, 415, media="application/json").json
    assert (answer["code"], MEDIA in answer["hint"]) == ("unsupported-media-type", True)
    monkeypatch.setattr(record_file, "MOST_BYTES", len(data) - 1)
    assert send(data, 413).json["code"] == "too-large"
    monkeypatch.setattr(record_file, "MOST_BYTES", len(data))
    monkeypatch.setattr(record_file, "MOST_WEIGHT", 1000)
    assert send(data, 422).json["code"] == "bad-record"


def test_it_comes_into_the_project_that_was_asked_for(site, samples, send):
    project = site.client.post("/v1/projects", json={"name": "elsewhere"}).json["id"]
    assert send(dumps(samples.tutorial()), query=f"?project={project}").json["project"] == project
    assert send(dumps(samples.tutorial()), 404, query="?project=prj_absent").json["code"] == "not-found"


def test_few_records_are_in_hand_at_once(site, samples, send, file):
    records, run = site.context.records, site.finished()
    seats = [records.take() for _ in range(records.most)]
    try:
        full = file(run)
        assert (full.status_code, full.json["code"]) == (503, "too-many-streams")
        assert int(full.headers["Retry-After"]) > 0
        send(dumps(samples.tutorial()), 503)
    finally:
        for give_back in seats:
            give_back()
    send(dumps(samples.tutorial()))
    assert records.taken == 0


@pytest.mark.parametrize("exit_code", [2**31, -(2**31) - 1, 2**63 - 1])
def test_an_exit_code_that_no_process_has_is_refused(site, samples, send, exit_code):
    record = samples.tutorial()
    end = msgspec.structs.replace(record.end, exit_code=exit_code)
    told = send(dumps(msgspec.structs.replace(record, end=end)), 422).json
    assert told["code"] == "bad-record"
    assert site.client.get("/v1/runs").json["items"] == []
