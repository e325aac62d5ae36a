"""The life of a run as a client sees it: submit, list, look, wait, cancel. On both databases."""

from __future__ import annotations

import dataclasses
import socket
import threading
import time

import msgspec
import pytest

from store.admin import workers
from tests.support.waiting import wait_until


def get(site, path, status=200, **headers):
    answer = site.client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def test_a_snippet_is_queued_with_everything_that_was_asked(site):
    asked = {
        "files": [{"path": "train.py", "text": "import net\n"}, {"path": "net.py", "text": "x = 1\n"}],
        "entry": "train.py",
        "arguments": ["--steps", "3"],
        "limits": {"wall_seconds": 10},
        "capture": {"tier": "grad", "every": 5, "histograms": True},
        "seed": 7,
        "priority": 2,
        "labels": {"pr": "12"},
    }
    answer = site.post(asked)
    assert answer.status_code == 202
    run = answer.json
    assert answer.headers["Location"] == f"/v1/runs/{run['id']}"
    assert answer.headers["Retry-After"] == "1"
    assert (run["status"], run["ended"], run["queue_position"], run["attempt"]) == ("queued", False, 0, 0)
    assert (run["entry"], run["arguments"], run["seed"], run["priority"]) == ("train.py", ["--steps", "3"], 7, 2)
    assert (run["labels"], run["queue"], run["min_isolation"]) == ({"pr": "12"}, "cpu", "none")
    assert run["limits"]["wall_seconds"] == 10
    assert run["limits"]["cpu_seconds"] == 30
    assert run["capture"] == {"tier": "grad", "every": 5, "histograms": True}
    assert get(site, f"/v1/runs/{run['id']}").json == run


def test_one_file_needs_no_entry_and_several_do(site):
    assert site.post({"files": [{"path": "a.py", "text": "x = 1\n"}]}).json["entry"] == "a.py"
    two = {"files": [{"path": "a.py", "text": "x = 1\n"}, {"path": "b.py", "text": "x = 1\n"}]}
    for body in (two, {**two, "entry": "c.py"}):
        answer = site.post(body)
        assert (answer.status_code, answer.json["code"]) == (422, "no-entry-point")
        assert answer.json["errors"][0]["pointer"] == "#/entry"


def test_nothing_that_was_refused_is_stored(site):
    for body in ({"source": "x = ("}, {"source": "x = 1", "device": "tpu"}, {"source": "x = 1", "isolation": "gvisor"}):
        assert site.post(body).status_code in {409, 422}
    assert get(site, "/v1/runs").json == {"items": [], "next_cursor": None}


def test_an_unknown_device_is_refused_and_a_device_without_a_worker_too(site):
    answer = site.post({"source": "x = 1", "device": "tpu"})
    assert (answer.status_code, answer.json["code"]) == (422, "unknown-device")
    assert site.post({"source": "x = 1", "device": "cuda"}).json["queue"] == "gpu"
    site.worker()
    assert site.post({"source": "x = 1", "device": "cuda"}).json["code"] == "unknown-device"
    site.worker(queues=("gpu",))
    assert site.post({"source": "x = 1", "device": "cuda"}).status_code == 202


def test_a_device_class_that_no_live_worker_has_is_refused_on_every_way_in(site):
    asked = {"source": "x = 1", "device": "cuda", "device_class": "cuda:test"}
    refused = site.post(asked)
    assert (refused.status_code, refused.json["code"]) == (422, "unknown-device")
    assert refused.json["errors"][0]["pointer"] == "#/device_class"
    site.worker()
    gpu = site.worker(queues=("gpu",))
    unknown = site.post({**asked, "device_class": "H9000"})
    assert (unknown.status_code, "offer: cuda:test" in unknown.json["detail"]) == (422, True)
    assert site.post({"source": "x = 1", "device_class": "cuda:test"}).status_code == 422  # not in the queue cpu
    run = site.post(asked)
    assert (run.status_code, run.json["device_class"]) == (202, "cuda:test")
    items = [{"custom_id": name, **asked, "device_class": name} for name in ("cuda:test", "H9000")]
    audit = site.client.post("/v1/audits", json={"name": "two", "items": items}).json["id"]
    found = site.client.get(f"/v1/audits/{audit}/items").json["items"]
    assert {item["custom_id"]: (item["problem"] or {}).get("code") for item in found} == {
        "cuda:test": None, "H9000": "unknown-device",
    }  # fmt: skip
    with site.context.database.begin() as transaction:
        workers.leave(transaction, gpu)
    site.worker(queues=("gpu",), draining=True)
    again = site.client.post(f"/v1/runs/{run.json['id']}/rerun", json={})
    assert (again.status_code, again.json["code"]) == (422, "unknown-device")


def test_more_isolation_than_live_workers_offer_is_refused_and_never_downgraded(site):
    answer = site.post({"source": "x = 1", "isolation": "process"})
    assert (answer.status_code, answer.json["code"]) == (409, "isolation-unavailable")
    assert "No worker of the queue cpu is alive" in answer.json["detail"]
    site.worker(levels=("none", "process"))
    assert site.post({"source": "x = 1", "isolation": "process"}).status_code == 202
    answer = site.post({"source": "x = 1", "isolation": "gvisor"})
    assert answer.status_code == 409
    assert "offer: none, process" in answer.json["detail"]


def test_a_limit_that_only_a_level_can_give_asks_for_that_level(site):
    several, folder = (
        {"source": "x = 1", "limits": {"processes": 3}},
        {"source": "x = 1", "limits": {"disk_bytes": 4096}},
    )
    assert site.post(several).json["code"] == "isolation-unavailable"
    assert site.post(folder).json["min_isolation"] == "none"  # where nothing is isolated, everything can be written
    site.worker(levels=("none", "process"))
    for body, limit in ((several, "processes"), (folder, "disk_bytes")):
        answer = site.post(body)
        assert (answer.status_code, answer.json["code"]) == (409, "isolation-unavailable")
        assert answer.json["errors"][0]["pointer"] == f"#/limits/{limit}"
        assert f"Asked for was namespace, by `limits.{limit}`" in answer.json["detail"]
    site.worker(levels=("none", "process", "namespace"))
    assert "none of them can make cgroups" in site.post(several).json["detail"]
    assert site.post(folder).json["min_isolation"] == "namespace"
    assert site.post({"source": "x = 1", "limits": {"disk_bytes": 0}}).json["min_isolation"] == "none"
    site.worker(levels=("none", "process", "namespace"), probe={"cgroup": True})
    assert site.post(several).json["min_isolation"] == "namespace"


def test_the_list_is_stable_under_inserts_and_filtered(site):
    first = [site.submit() for _ in range(5)]
    page = get(site, "/v1/runs?limit=2")
    assert [run["id"] for run in page.json["items"]] == first[:2:-1]
    site.submit()
    following = f"/v1/runs?limit=2&cursor={page.json['next_cursor']}"
    assert page.headers["Link"] == f'<{following}>; rel="next"'
    rest = get(site, following).json
    assert [run["id"] for run in rest["items"]] == [first[2], first[1]]
    last = get(site, f"/v1/runs?limit=2&cursor={rest['next_cursor']}").json
    assert [run["id"] for run in last["items"]] == [first[0]]
    assert last["next_cursor"] is None
    assert get(site, "/v1/runs?status=succeeded,failed").json["items"] == []
    assert len(get(site, "/v1/runs?status=queued&queue=cpu").json["items"]) == 6
    get(site, f"/v1/runs?status=queued&cursor={page.json['next_cursor']}", status=422)


def test_the_list_is_filtered_by_time(site):
    run = get(site, f"/v1/runs/{site.submit()}").json
    at = run["created_at"]
    assert get(site, f"/v1/runs?created.lt={at}").json["items"] == []
    assert get(site, f"/v1/runs?created.gt={at}").json["items"] == []
    assert len(get(site, "/v1/runs?created.gt=2020-01-01T00:00:00%2B01:00").json["items"]) == 1


def test_a_finished_run_tells_its_outcome_and_carries_what_was_asked_for(site):
    run = site.finished()
    told = get(site, f"/v1/runs/{run}?include=findings,tensors").json
    assert (told["status"], told["ended"], told["attempt"]) == ("succeeded", True, 1)
    assert told["outcome"]["wall_seconds"] == 0.25
    assert told["isolation"]["level"] == "none"
    assert told["record"]["tensors"] == 5
    assert told["findings"]["warning"] == 1
    (finding,) = told["included"]["findings"]["items"]
    assert (finding["rule"]["code"], finding["run"]) == ("BP101", run)
    assert [tensor["name"] for tensor in told["included"]["tensors"]["items"]] == ["x", "W", "b", "z", "loss"]
    assert get(site, f"/v1/runs/{run}").json["included"] is None


def test_what_is_included_goes_on_in_its_own_list(site, samples, monkeypatch):
    from backprobe.rules import judge
    from service.api.runs import run_includes as included

    monkeypatch.setattr(included, "MOST_INCLUDED", 2)
    record = samples.tutorial()
    said = judge(record)
    three = [msgspec.structs.replace(said.findings[0], fingerprint=f"backprobe/v1:{n:016x}") for n in range(3)]
    run = site.finished(record, judgement=dataclasses.replace(said, findings=tuple(three)))
    told = get(site, f"/v1/runs/{run}?include=findings,tensors").json["included"]
    for name, asked in (("tensors", ""), ("findings", "include=trials&")):
        whole = get(site, f"/v1/runs/{run}/{name}?{asked}").json["items"]
        first, cursor = told[name]["items"], told[name]["next_cursor"]
        assert first == whole[:2]
        rest = get(site, f"/v1/runs/{run}/{name}?{asked}cursor={cursor}").json
        assert (first + rest["items"], rest["next_cursor"]) == (whole, None)


def test_an_etag_answers_304_until_something_changes(site):
    run = site.submit()
    first = get(site, f"/v1/runs/{run}")
    etag = first.headers["ETag"]
    get(site, f"/v1/runs/{run}", status=304, **{"If-None-Match": etag})
    site.finish(run, None)
    ended = get(site, f"/v1/runs/{run}", **{"If-None-Match": etag})
    assert ended.headers["ETag"] != etag
    assert ended.headers["Cache-Control"] == "no-cache"
    get(site, f"/v1/runs/{run}", status=304, **{"If-None-Match": f'"other", W/{ended.headers["ETag"]}'})


def test_waiting_ends_with_the_run(site):
    run = site.submit()
    threading.Timer(0.3, site.finish, (run,)).start()
    begun = time.monotonic()
    answer = get(site, f"/v1/runs/{run}", Prefer="wait=20")
    assert answer.json["ended"]
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert 0.2 < time.monotonic() - begun < 10
    again = get(site, f"/v1/runs/{run}", Prefer="wait=20")
    assert again.headers["Preference-Applied"] == "wait=20"


def test_a_submit_that_waits_in_vain_is_accepted(site):
    begun = time.monotonic()
    answer = site.post(headers={"Prefer": "respond-async, wait=1"})
    assert answer.status_code == 202
    assert answer.headers["Preference-Applied"] == "wait=1"
    assert time.monotonic() - begun >= 0.9


def test_a_submit_that_waits_gives_the_ended_run(site):
    def work():
        from store.runs import lifecycle
        from store.runs.completion import Ending, finish

        deadline = time.monotonic() + 20
        while (claim := lifecycle.claim(site.context.database, site.worker())) is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        finish(site.context.database, claim, Ending(status="succeeded", exit_code=0), None, None)

    worker = threading.Thread(target=work)
    worker.start()
    answer = site.post(headers={"Prefer": "wait=20"})
    worker.join(20)
    assert answer.status_code == 200, answer.text
    assert answer.json["status"] == "succeeded"
    assert answer.headers["Content-Location"] == answer.headers["Location"] == f"/v1/runs/{answer.json['id']}"


def test_at_most_half_of_the_threads_wait(make):
    site = make(threads=2)
    run = site.submit()
    first = threading.Thread(target=get, args=(site, f"/v1/runs/{run}"), kwargs={"Prefer": "wait=20"})
    first.start()
    deadline = time.monotonic() + 10
    while site.context.waiters.waiting < 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    begun = time.monotonic()
    answer = site.app.test_client().get(f"/v1/runs/{run}", headers={"Prefer": "wait=20"})
    assert time.monotonic() - begun < 10
    assert "Preference-Applied" not in answer.headers
    site.finish(run, None)
    first.join(20)
    assert not first.is_alive()


@pytest.mark.parametrize("prefer", ["wait=-1", "wait=soon", "wait", "", "wait=1.5"])
def test_a_preference_that_cannot_be_read_is_ignored(site, prefer):
    assert "Preference-Applied" not in site.post(headers={"Prefer": prefer}).headers


def test_a_queued_run_is_canceled_at_once(site):
    run = site.submit()
    answer = site.client.post(f"/v1/runs/{run}/cancel")
    assert (answer.status_code, answer.json["status"], answer.json["ended"]) == (200, "canceled", True)
    again = site.client.post(f"/v1/runs/{run}/cancel", json={})
    assert (again.status_code, again.json["version"]) == (200, answer.json["version"])


def test_a_running_run_is_asked_to_stop(site):
    from store.runs import lifecycle

    run = site.submit()
    lifecycle.claim(site.context.database, site.worker())
    answer = site.client.post(f"/v1/runs/{run}/cancel")
    assert answer.status_code == 202
    assert answer.json["status"] == "running"
    assert answer.json["cancel_requested_at"] is not None


def test_cancel_takes_no_fields(site):
    run = site.submit()
    answer = site.client.post(f"/v1/runs/{run}/cancel", json={"force": True})
    assert (answer.status_code, answer.json["code"]) == (422, "invalid-request")


def test_a_run_is_judged_again_when_it_is_asked_for_and_what_is_gone_can_be_listed(site, samples):
    from backprobe.rules import Judgement
    from store.findings import rejudging

    record = samples.tutorial()
    run = site.finished(record)
    (before,) = get(site, f"/v1/runs/{run}/findings").json["items"]
    answer = site.client.post(f"/v1/runs/{run}/judge")
    assert answer.status_code == 202
    database = site.context.database
    with database.read() as reading:
        (due,) = rejudging.due(reading)
    assert due.public_id == run
    silent = Judgement(findings=(), rules_judged=1, not_run=(), ruleset="rs_silent")
    rejudging.judged_again(database, due, record, silent, {})
    assert get(site, f"/v1/runs/{run}/findings").json["items"] == []
    (gone,) = get(site, f"/v1/runs/{run}/findings?gone=true").json["items"]
    assert gone["id"] == before["id"]
    assert gone["gone"]["ruleset"] == "rs_silent"
    assert before["gone"] is None


def test_only_an_ended_run_with_a_record_is_judged_again(site):
    waiting = site.client.post(f"/v1/runs/{site.submit()}/judge")
    assert (waiting.status_code, waiting.json["code"]) == (409, "run-not-ended")
    empty = site.submit()
    site.client.post(f"/v1/runs/{empty}/cancel")
    answer = site.client.post(f"/v1/runs/{empty}/judge")
    assert (answer.status_code, answer.json["code"]) == (410, "record-expired")


def test_a_broker_that_never_answers_holds_no_request_and_costs_no_run(make):
    site = make()
    with socket.create_server(("127.0.0.1", 0)) as mute:  # the kernel connects, nobody ever answers
        address = f"redis://127.0.0.1:{mute.getsockname()[1]}/0"
        site = make(store=dataclasses.replace(site.context.settings.store, broker_url=address))
        run = site.submit()
        assert site.client.get("/readyz").json["wakeups_failed"] == 0  # the request came back while it still waits
    wait_until(lambda: site.client.get("/readyz").json["wakeups_failed"], "the wake-up that failed")
    assert get(site, f"/v1/runs/{run}").json["status"] == "queued"
