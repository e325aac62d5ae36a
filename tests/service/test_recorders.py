"""The three requests of a recorder, on both databases. tests/store/test_recorders.py tests what the store does."""

from __future__ import annotations

import asyncio
import datetime
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import sqlalchemy as sa

from backprobe.client import ApiError, AsyncClient, Client, new_run_id
from backprobe.record import MAGIC, dumps, loads, split
from service.api.runs.recorders import MOST_FRAMES_AT_ONCE, MOST_REQUEST_BYTES
from store import tables
from store.recorders import ending as recorder_end
from store.recorders import recorders
from store.recorders.live_view import Views

MEDIA = "application/vnd.backprobe.record"


@pytest.fixture
def frames(samples):
    return list(split(dumps(samples.tutorial())))


@pytest.fixture
def begin(site):
    def put_run(run=None, status=201, headers=None, **body):
        run = run or new_run_id()
        answer = site.client.put(f"/v1/runs/{run}", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json

    return put_run


@pytest.fixture
def send(site):
    def put_frame(run, n, data, status=204, media=MEDIA):
        answer = site.client.put(f"/v1/runs/{run}/frames/{n}", data=data, content_type=media)
        assert answer.status_code == status, answer.text
        return answer

    return put_frame


@pytest.fixture
def end(site):
    def post_end(run, status=200, headers=None, **body):
        answer = site.client.post(f"/v1/runs/{run}/end", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json

    return post_end


def test_a_recorder_makes_sends_and_ends_its_run_and_a_worker_judges_it(site, begin, send, end, frames, samples):
    from workers.upkeep.rejudging import Rejudging

    asked = {"labels": {"job": "a"}, "capture": {"tier": "grad", "every": 10}, "environment": {"torch": "2.13.0"}}
    told = begin(**asked)
    run = told["id"]
    assert (told["status"], told["origin"], told["labels"], told["capture"]) == (
        "running", "watched", asked["labels"], asked["capture"],
    )  # fmt: skip
    assert begin(run, 200, **asked)["id"] == run
    for n, data in enumerate(frames):
        assert send(run, n, data).headers["Next-Frame"] == str(n + 1)
    now = site.client.get(f"/v1/runs/{run}").json
    assert (now["recorder"]["next_frame"], now["recorder"]["environment"]) == (len(frames), {"torch": "2.13.0"})
    Views(site.context.database).turn(60.0)
    assert site.client.get(f"/v1/runs/{run}").json["record"]["live"] is True
    numbers = [row["tensor"] for row in site.client.get(f"/v1/runs/{run}/tensors").json["items"]]
    assert numbers == [tensor.tensor for tensor in samples.tutorial().tensors]
    assert site.client.get(f"/v1/runs/{run}/findings").json["code"] == "not-judged-yet"
    page = site.client.get(f"/runs/{run}").text
    rows = page.count('<tr id="t')
    assert ("last heartbeat" in page, "<dt>isolation" in page, rows) == (True, False, len(numbers))
    told = end(run, frames=len(frames))
    assert (told["status"], told["record"]["state"], told["findings"]["ruleset"]) == ("succeeded", "whole", None)
    assert end(run)["version"] == told["version"]
    Rejudging(site.context.database).turn()
    (finding,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    assert finding["rule"]["code"] == "BP101"
    assert loads(site.client.get(f"/v1/runs/{run}/record").data).tensors == samples.tutorial().tensors
    actions = [entry["action"] for entry in site.client.get("/v1/audit-log").json["items"] if entry["object"] == run]
    assert actions == ["run.end", "run.record"]


def test_what_cannot_be_is_refused_with_its_code(begin, send, end, frames, site):
    run = begin()["id"]
    assert send(run, 0, frames[1], 422).json["errors"][0]["code"] == "no-header"
    assert send(run, 0, b"PK", 422).json["code"] == "bad-record"
    assert send(run, 0, frames[0] + b"x", 422).json["code"] == "bad-record"
    assert send(run, 0, frames[0], 415, "application/json").json["code"] == "unsupported-media-type"
    send(run, 0, frames[0])
    gap = send(run, 7, frames[1], 409)
    assert (gap.json["code"], gap.headers["Next-Frame"]) == ("frame-missing", "1")
    send(run, 1, frames[1])
    assert send(run, 1, frames[2], 409).json["code"] == "frame-differs"
    assert begin(run, 409, labels={"a": "b"})["code"] == "run-differs"
    assert end(run, 409, frames=9)["code"] == "frame-missing"
    assert end(run, 422, error={"message": "x"})["code"] == "invalid-request"
    assert end(run)["error"]["code"] == "record-cut"
    assert send(run, 2, frames[2], 409).json["code"] == "run-ended"
    assert send(run, 1, frames[1]).headers["Next-Frame"] == "2"
    assert begin(run, 409)["code"] == "run-ended"
    submitted = site.submit()
    for answer in (begin(submitted, 409), send(submitted, 0, frames[0], 409).json, end(submitted, 409)):
        assert answer["code"] == "run-differs"
    assert begin("run_1", 422)["errors"][0]["parameter"] == "run"
    assert begin("run_0" + "0" * 25, 422)["code"] == "id-time-refused"


@pytest.mark.parametrize("environment", [{}, {"script": "launcher.py"}])
def test_the_source_that_came_along_is_shown_with_its_lines(site, begin, send, end, frames, samples, environment):
    run = begin(environment=environment)["id"]
    assert site.client.get(f"/v1/runs/{run}/source").json["code"] == "source-not-kept"
    send(run, 0, b"".join(frames))
    Views(site.context.database).turn(60.0)
    (source,) = samples.tutorial().sources
    for _ in range(2):
        told = site.client.get(f"/v1/runs/{run}/source").json
        assert (told["path"], told["files"]) == (source.path, [source.path])
        assert [line["text"] for line in told["lines"]] == source.text.rstrip("\n").split("\n")
        assert any(line["bindings"] for line in told["lines"])
        assert site.client.get(f"/v1/runs/{run}/source?file=gone.py").status_code == 404
        line = next(line["text"] for line in told["lines"] if "requires_grad" in line["text"])
        assert line.split("=")[0].strip() in site.client.get(f"/runs/{run}").text
        end(run)


def test_a_run_is_judged_while_it_goes_on_and_its_end_changes_nothing_of_it(site, begin, send, end, frames, samples):
    from workers.upkeep.rejudging import Rejudging
    from workers.watched_judging import LEAST_SECONDS, WatchedJudging

    hook = {"url": "https://hook.example/x", "events": ["finding.new"]}
    site.client.post("/v1/webhooks", json=hook)
    run, now = begin()["id"], [0.0]
    judging = WatchedJudging(site.context.database, lambda: now[0])
    judging.turn()
    assert site.client.get(f"/v1/runs/{run}/findings").json["code"] == "not-judged-yet"
    send(run, 0, b"".join(frames[:-1]))
    judging.turn()
    Views(site.context.database).turn(60.0)
    (finding,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    assert (finding["rule"]["code"], finding["run"]) == ("BP101", run)
    assert [row["id"] for row in site.client.get("/v1/findings").json["items"]] == [finding["id"]]
    assert site.client.get(f"/v1/findings/{finding['id']}").json["id"] == finding["id"]
    told = site.client.get(f"/v1/runs/{run}").json
    assert (told["status"], told["findings"]["warning"]) == ("running", 1)
    events = site.client.get(f"/v1/runs/{run}/events").json["items"]
    assert [(event["kind"], event["detail"]) for event in events][-1] == ("judged", {"new": 1, "findings": 1})
    with site.context.database.read() as transaction:
        kinds = transaction.execute(sa.select(tables.outbox.c.kind)).scalars().all()
    assert kinds == ["finding.new"]
    judging.turn()
    assert site.client.get(f"/v1/runs/{run}").json["version"] == told["version"], "nothing new has come"
    send(run, len(frames) - 1, frames[-1])
    judging.turn()
    assert site.client.get(f"/v1/runs/{run}/events").json["items"][-1]["seq"] == events[-1]["seq"], (
        "it is not due again"
    )
    now[0] += LEAST_SECONDS
    judging.turn()
    assert site.client.get(f"/v1/runs/{run}/events").json["items"][-1]["detail"] == {"new": 0, "findings": 1}
    end(run, frames=len(frames))
    Rejudging(site.context.database).turn()
    (after,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    assert {**after, "group": None} == {**finding, "group": None}
    assert site.client.get(f"/v1/runs/{run}/findings?gone=true").json["items"] == []
    (group,) = site.client.get("/v1/finding-groups").json["items"]
    assert group["runs"] == 1
    judging.turn()


def test_judging_all_runs_that_go_on_takes_a_share_of_the_time(site, begin, send, frames):
    from itertools import count

    from workers.watched_judging import SHARE_OF_ALL, WatchedJudging

    runs = [begin()["id"] for _ in range(2)]
    for run in runs:
        send(run, 0, b"".join(frames[:-1]))
    ticks = count()
    waits = [0.0]
    judging = WatchedJudging(site.context.database, lambda: next(ticks) + waits[0])  # one second for each look at it

    def count_judged():
        return [site.client.get(f"/v1/runs/{run}").json["findings"]["ruleset"] is not None for run in runs].count(True)

    judging.turn()
    assert count_judged() == 1
    judging.turn()
    assert count_judged() == 1, "the other one's turn comes later"
    waits[0] += 10 / SHARE_OF_ALL
    judging.turn()
    assert count_judged() == 2


def test_tenants_take_turns_at_having_their_runs_judged_while_they_go_on(site, two, frames):
    from workers.watched_judging import LEAST_SECONDS, WatchedJudging

    def send_frames(whose, first, some, run=None):
        run, bodies = run or new_run_id(), b"".join(some)
        assert site.client.put(f"/v1/runs/{run}", json={}, headers=whose).status_code in (200, 201)
        path = f"/v1/runs/{run}/frames/{first}"
        assert site.client.put(path, data=bodies, headers=whose | {"Content-Type": MEDIA}).status_code == 204
        return run

    def is_judged(run, whose):
        return site.client.get(f"/v1/runs/{run}", headers=whose).json["findings"]["ruleset"] is not None

    greedy, patient = two
    now = [0.0]
    judging = WatchedJudging(site.context.database, lambda: now[0])
    theirs = send_frames(patient, 0, frames[:-2])
    judging.turn()
    now[0] += 1.0
    first = send_frames(greedy, 0, frames[:-1])
    judging.turn()
    assert is_judged(theirs, patient) and is_judged(first, greedy)
    now[0] += LEAST_SECONDS
    second = send_frames(greedy, 0, frames[:-1])
    send_frames(patient, len(frames) - 2, frames[-2:-1], theirs)
    judging.turn()
    assert not is_judged(second, greedy), "it was the other's turn"
    judging.turn()
    assert is_judged(second, greedy)


def test_a_run_whose_end_is_in_hand_is_not_judged_beside_it(site, begin, send, frames):
    from store.recorders.judging import open_runs
    from workers.watched_judging import WatchedJudging

    run = begin()["id"]
    send(run, 0, b"".join(frames))
    (seen,) = open_runs(site.context.database)
    with site.context.database.begin() as transaction:
        recorder_end.close(transaction, run, recorder_end.ReportedEnd())
    WatchedJudging(site.context.database).turn()
    assert seen.claim.public_id == run
    assert site.client.get(f"/v1/runs/{run}/findings").json["code"] == "not-judged-yet"


def test_many_frames_go_in_one_request_and_those_that_have_come_before_change_nothing(site, begin, send, end, frames):
    run = begin()["id"]
    assert send(run, 0, b"".join(frames[:3])).headers["Next-Frame"] == "3"
    assert send(run, 1, b"".join(frames[1:-1])).headers["Next-Frame"] == str(len(frames) - 1)
    assert send(run, 0, b"".join(frames[:3])).headers["Next-Frame"] == str(len(frames) - 1)
    assert send(run, 1, frames[1] + frames[1], 409).json["code"] == "frame-differs"
    gap = send(run, len(frames), b"".join(frames[-2:]), 409)
    assert (gap.json["code"], gap.headers["Next-Frame"]) == ("frame-missing", str(len(frames) - 1))
    send(run, len(frames) - 1, frames[-1])
    assert end(run, frames=len(frames))["status"] == "succeeded"
    assert send(run, 0, b"".join(frames)).headers["Next-Frame"] == str(len(frames))


def test_of_frames_of_which_one_is_refused_none_is_kept(site, begin, send, frames):
    run = begin()["id"]
    for bad in (frames[0] + b"PK", frames[0] + frames[1] + frames[0], frames[1] + frames[0], MAGIC, MAGIC + frames[0]):
        assert send(run, 0, bad, 422).json["code"] == "bad-record"
    many = send(run, 0, frames[0] + frames[1] * MOST_FRAMES_AT_ONCE, 422)
    assert many.json["errors"][0]["code"] == "too-many-frames"
    assert site.client.get(f"/v1/runs/{run}").json["recorder"]["next_frame"] == 0


def test_more_than_a_run_may_have_is_too_large(begin, send, frames, monkeypatch):
    run = begin()["id"]
    assert send(run, 0, b"x" * (MOST_REQUEST_BYTES + 1), 413).json["code"] == "too-large"
    send(run, 0, frames[0])
    monkeypatch.setattr(recorders, "MOST_BYTES", len(frames[0]))
    assert "may have" in send(run, 1, frames[1], 413).json["detail"]


def test_frames_count_in_the_quota_and_beyond_it_none_is_taken(site, begin, send, frames):
    from store.tables import tenant

    run = begin()["id"]
    send(run, 0, frames[0])
    with site.context.database.begin() as transaction:
        before = transaction.execute(tenant.select()).first().max_record_bytes
        transaction.execute(tenant.update().values(max_record_bytes=1))
    try:
        assert send(run, 1, frames[1], 429).json["code"] == "quota-exceeded"
    finally:
        with site.context.database.begin() as transaction:
            transaction.execute(tenant.update().values(max_record_bytes=before))


def test_a_recorder_that_begins_counts_in_the_quota_too(site, begin, send, frames):
    from store.tables import tenant

    run = begin()["id"]
    send(run, 0, frames[0])
    other = new_run_id()
    with site.context.database.begin() as transaction:
        before = transaction.execute(tenant.select()).first().max_record_bytes
        transaction.execute(tenant.update().values(max_record_bytes=1))
    try:
        assert begin(other, 429)["code"] == "quota-exceeded"
        assert site.client.get(f"/v1/runs/{other}").status_code == 404
    finally:
        with site.context.database.begin() as transaction:
            transaction.execute(tenant.update().values(max_record_bytes=before))
    begin(other)


def test_the_operator_says_how_long_a_recorder_may_be_silent(module_make, frames):
    site = module_make(recorder_lease_seconds=60.0)
    run = new_run_id()
    assert site.client.put(f"/v1/runs/{run}", json={}).status_code == 201

    def lease():
        query = sa.select(tables.run.c.lease_until, tables.run.c.heartbeat_at).where(tables.run.c.public_id == run)
        with site.context.database.read() as reading:
            until, heard = map(datetime.datetime.fromisoformat, reading.execute(query).one())
        return (until - heard).total_seconds()

    assert 59 <= lease() <= 61
    sent = site.client.put(f"/v1/runs/{run}/frames/0", data=frames[0], content_type=MEDIA)
    assert sent.status_code == 204
    assert 59 <= lease() <= 61


@pytest.mark.parametrize("text", ["59", "7776001", "a day", "1e4", "-3600", "²"])
def test_a_lease_that_is_none_is_refused_at_the_start(tmp_path, text):
    from service.settings import Settings

    with pytest.raises(ValueError, match=r"BACKPROBE_RECORDER_LEASE_SECONDS .* from 60 to 7776000"):
        Settings.from_environment({"BACKPROBE_RECORDER_LEASE_SECONDS": text}, tmp_path)
    found = Settings.from_environment({"BACKPROBE_RECORDER_LEASE_SECONDS": "3600"}, tmp_path)
    assert found.recorder_lease_seconds == 3600.0


def test_two_ends_at_once_are_one_end(site, begin, send, end, frames):
    run = begin()["id"]
    for n, data in enumerate(frames):
        send(run, n, data)
    together = threading.Barrier(3)

    def end_once():
        together.wait()
        return site.app.test_client().post(f"/v1/runs/{run}/end", json={}).status_code

    with ThreadPoolExecutor(3) as pool:
        found = [future.result() for future in [pool.submit(end_once) for _ in range(3)]]
    assert set(found) <= {200, 202}
    assert 200 in found
    assert end(run)["record"]["state"] == "whole"


def test_an_end_beyond_those_that_are_written_at_once_is_kept_and_written_soon(site, begin, send, end, frames):
    run = begin()["id"]
    for n, data in enumerate(frames):
        send(run, n, data)
    seats = [site.context.ends.take() for _ in range(site.context.ends.most)]
    try:
        answer = site.client.post(f"/v1/runs/{run}/end", json={"status": "failed", "frames": len(frames)})
        assert (answer.status_code, answer.json["status"]) == (202, "running")
    finally:
        for give_back in seats:
            give_back()
    (overdue_run,) = recorder_end.overdue(site.context.database)
    assert overdue_run.was_told
    assert recorder_end.end_overdue(site.context.database, overdue_run)
    told = end(run)
    assert (told["status"], told["record"]["state"]) == ("failed", "whole")


def test_an_end_whose_writer_was_killed_is_written_by_who_asks_again(site, begin, send, end, frames):
    from store.tables import Now
    from store.tables import run as table

    run = begin()["id"]
    for n, data in enumerate(frames):
        send(run, n, data)
    with site.context.database.begin() as transaction:
        recorder_end.close(transaction, run, recorder_end.ReportedEnd())
    assert end(run, 202)["status"] == "running"
    with site.context.database.begin() as transaction:
        transaction.execute(table.update().where(table.c.public_id == run).values(lease_until=Now(-1.0)))
    assert end(run)["record"]["state"] == "whole"


def test_a_key_makes_an_end_once(begin, end):
    run = begin()["id"]
    first = end(run, headers={"Idempotency-Key": "k"})
    assert end(run, headers={"Idempotency-Key": "k"})["id"] == first["id"]


def test_a_run_that_is_there_may_be_asked_for_under_a_key_again_and_again(begin):
    run = begin()["id"]
    for _ in range(2):
        assert begin(run, 200, headers={"Idempotency-Key": "begun"})["id"] == run


@pytest.fixture
def served(make):
    from service.process.address import listen
    from service.server.http_server import Server

    site = make(threads=8)
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=8)
    server.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.stop()


def test_the_clients_record_a_run(served, frames):
    with Client(served) as client:
        run = client.begin_recording(new_run_id(), labels={"a": "b"})
        assert client.begin_recording(run.id, labels={"a": "b"}).id == run.id
        assert [client.send_frame(run.id, n, data) for n, data in enumerate(frames)] == list(range(1, len(frames) + 1))
        with pytest.raises(ApiError) as refused:
            client.send_frame(run.id, len(frames) + 1, frames[1])
        assert refused.value.code == "frame-missing"
        assert client.end_recording(run.id, frames=len(frames)).status == "succeeded"

    async def ask():
        async with AsyncClient(served) as client:
            run = await client.begin_recording(new_run_id())
            wanted = await client.send_frame(run.id, 0, frames[0])
            return wanted, (await client.end_recording(run.id, status="failed", exit_code=3)).error["message"]

    # in a thread: the browser's tests leave a loop running in this one
    assert ThreadPoolExecutor(1).submit(asyncio.run, ask()).result() == (1, "it exited with 3")


def test_a_packed_frame_is_refused_before_it_is_read(site, begin, frames):
    path = f"/v1/runs/{begin()['id']}/frames/0"
    answer = site.client.put(path, data=frames[0], content_type=MEDIA, headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json["errors"][0]["header"]) == (415, "Content-Encoding")


def test_an_exit_code_that_no_process_has_is_refused_and_the_run_can_end(site, begin, send, end, samples):
    record = samples.tutorial()
    damaged = msgspec.structs.replace(record, end=msgspec.structs.replace(record.end, exit_code=2**40))
    run = begin()["id"]
    *frames, last = split(dumps(damaged))
    for n, frame in enumerate(frames):
        send(run, n, frame)
    assert send(run, len(frames), last, 422).json["code"] == "bad-record"
    end(run)
    assert site.client.get(f"/v1/runs/{run}").json["ended"]
