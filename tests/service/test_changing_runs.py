"""What an owner changes of a run: labels, pin and time by PATCH, deletion, and running it again. On both databases."""

from __future__ import annotations

import pytest


def change(site, run, body, etag=None, status=200):
    tag = site.client.get(f"/v1/runs/{run}").headers["ETag"] if etag is None else etag
    answer = site.client.patch(f"/v1/runs/{run}", json=body, headers={"If-Match": tag} if tag else {})
    assert answer.status_code == status, answer.text
    return answer


def test_labels_pin_and_time_are_changed_and_nothing_else(site):
    run = site.finished(body={"labels": {"pr": "1"}})
    before = site.client.get(f"/v1/runs/{run}")
    answer = change(site, run, {"labels": {"pr": "2", "team": "x"}, "kept_until": "2031-02-03T04:05:06.789+01:00"})
    told = answer.json
    assert (told["labels"], told["kept_until"]) == ({"pr": "2", "team": "x"}, "2031-02-03T03:05:06.789Z")
    assert told["version"] == before.json["version"] + 1
    rest = ("labels", "kept_until", "version")
    assert {k: v for k, v in told.items() if k not in rest} == {k: v for k, v in before.json.items() if k not in rest}
    assert change(site, run, {"pinned": True}).json["pinned"] is True
    now = site.client.get(f"/v1/runs/{run}")
    assert (now.json["labels"], now.json["pinned"]) == ({"pr": "2", "team": "x"}, True)
    same = change(site, run, {})
    assert (same.json, same.headers["ETag"]) == (now.json, now.headers["ETag"])


def test_a_change_without_its_state_or_with_an_old_one_is_refused(site):
    run = site.finished()
    old = site.client.get(f"/v1/runs/{run}").headers["ETag"]
    assert change(site, run, {"pinned": True}, etag="", status=428).json["code"] == "if-match-needed"
    change(site, run, {"pinned": True}, etag=old)
    refused = change(site, run, {"pinned": False}, etag=old, status=412)
    assert (refused.json["code"], refused.json["errors"][0]["header"]) == ("stale", "If-Match")
    assert change(site, run, {"pinned": False}, etag=refused.headers["ETag"]).json["pinned"] is False
    assert change(site, run, {"pinned": True}, etag="*").json["pinned"] is True
    assert change(site, run, {"pinned": True}, etag=f"W/{old}", status=412).json["code"] == "stale"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"labels": None}, "#/labels"),
        ({"pinned": "yes"}, "#/pinned"),
        ({"kept_until": "2031-02-03T04:05:06"}, "#/kept_until"),
        ({"kept_until": "2131-02-03T04:05:06Z"}, "#/kept_until"),
        ({"status": "lost"}, "#/status"),
        ({"labels": {"a b": "c"}}, "#/labels/a b/[key]"),
    ],
)
def test_a_wrong_change_is_told_where_and_changes_nothing(plain_site, body, pointer):
    run = plain_site.submit()
    before = plain_site.client.get(f"/v1/runs/{run}").json
    assert change(plain_site, run, body, status=422).json["errors"][0]["pointer"] == pointer
    assert plain_site.client.get(f"/v1/runs/{run}").json == before


def test_what_is_deleted_is_gone_and_the_run_and_its_findings_stay(site, samples):
    from store.records.expiry.sweep import RECORD_TABLES

    run = site.finished()
    findings = site.client.get(f"/v1/runs/{run}/findings").json
    assert findings["items"]
    for _ in range(2):
        assert site.client.delete(f"/v1/runs/{run}").status_code == 204
    told = site.client.get(f"/v1/runs/{run}").json
    assert (told["status"], told["record"]["state"], told["record"]["bytes"]) == ("succeeded", "expired", 0)
    for below in ("tensors", "snapshots", "backward-calls", "graph", "checks", "output", "tensors/0", "rows/sites"):
        assert site.client.get(f"/v1/runs/{run}/{below}").json["code"] == "record-expired", below
    assert site.client.get(f"/v1/runs/{run}/source").json["code"] == "source-not-kept"
    assert site.client.post(f"/v1/runs/{run}/rerun").json["code"] == "source-not-kept"
    assert site.client.post(f"/v1/runs/{run}/judge").json["code"] == "record-expired"
    assert site.client.get(f"/v1/runs/{run}/findings").json == findings
    assert site.client.get(f"/runs/{run}").status_code == 200
    with site.context.database.read() as transaction:
        assert {table.name: transaction.execute(table.select()).first() for table in RECORD_TABLES} == dict.fromkeys(
            table.name for table in RECORD_TABLES
        )
    log = [entry["action"] for entry in site.client.get(f"/v1/audit-log?object={run}").json["items"]]
    assert log == ["run.delete", "run.submit"]


def test_the_rows_of_a_large_record_go_after_the_answer_and_nobody_reads_them_meanwhile(site, monkeypatch):
    from store.records.expiry import removal
    from store.runs import owner_changes
    from store.tables import record

    monkeypatch.setattr(owner_changes, "AT_ONCE", 3)
    run = site.finished()
    assert site.client.delete(f"/v1/runs/{run}").status_code == 204
    assert site.client.get(f"/v1/runs/{run}/tensors").json["code"] == "record-expired"
    with site.context.database.read() as transaction:
        assert transaction.execute(record.select()).first() is not None
    assert removal.leftovers(site.context.database) == 1
    with site.context.database.read() as transaction:
        assert transaction.execute(record.select()).first() is None


def test_a_program_stays_while_another_run_has_it_and_comes_back_when_sent_again(site, samples):
    first, second = site.finished(), site.finished()
    site.client.delete(f"/v1/runs/{first}")
    assert site.client.get(f"/v1/runs/{second}/source").status_code == 200
    site.client.delete(f"/v1/runs/{second}")
    assert site.client.get(f"/v1/runs/{second}/source").json["code"] == "source-not-kept"
    third = site.submit()
    lines = site.client.get(f"/v1/runs/{third}/source").json["lines"]
    assert "\n".join(line["text"] for line in lines).strip() == samples.TUTORIAL.strip()


def test_a_run_that_has_not_ended_is_not_deleted(site):
    run = site.submit()
    answer = site.client.delete(f"/v1/runs/{run}")
    assert (answer.status_code, answer.json["code"]) == (409, "run-not-ended")
    assert site.client.get(f"/v1/runs/{run}/source").status_code == 200


def test_a_run_is_repeated_with_what_it_had_but_for_what_is_asked(site):
    asked = {
        "files": [{"path": "train.py", "text": "import net\n"}, {"path": "net.py", "text": "x = 1\n"}],
        "entry": "train.py",
        "arguments": ["--steps", "3"],
        "limits": {"wall_seconds": 10, "threads": 2},
        "capture": {"tier": "grad", "every": 5},
        "seed": 7,
        "priority": 2,
        "labels": {"pr": "12"},
        "rules": {"ignore": ["BP101"], "severity": {"missing-zero-grad": "note"}},
    }
    first = site.post(asked).json
    plain = site.client.post(f"/v1/runs/{first['id']}/rerun")
    assert (plain.status_code, plain.headers["Location"]) == (202, f"/v1/runs/{plain.json['id']}")
    own = ("id", "created_at", "kept_until", "queue_position", "links", "rerun_of")
    assert {k: v for k, v in plain.json.items() if k not in own} == {k: v for k, v in first.items() if k not in own}
    assert plain.json["rerun_of"] == first["id"]
    assert plain.json["rules"] == asked["rules"]
    other = {"limits": {"threads": 4}, "capture": {"tier": "full"}, "seed": None, "rules": None}
    again = site.client.post(f"/v1/runs/{plain.json['id']}/rerun", json=other).json
    assert (again["seed"], again["rerun_of"]) == (None, plain.json["id"])
    assert (plain.json["capture"], again["capture"]) == (
        {"tier": "grad", "every": 5, "histograms": False}, {"tier": "full", "histograms": False},
    )  # fmt: skip
    assert again["rules"] is None
    assert (again["limits"]["wall_seconds"], again["limits"]["threads"]) == (10, 4)


def test_a_repeated_run_asks_for_what_workers_can_give(site):
    site.worker()
    run = site.submit()
    refused = site.client.post(f"/v1/runs/{run}/rerun", json={"isolation": "namespace"})
    assert (refused.status_code, refused.json["code"]) == (409, "isolation-unavailable")
    refused = site.client.post(f"/v1/runs/{run}/rerun", json={"queue": "gpu"})
    assert (refused.status_code, refused.json["code"]) == (422, "unknown-device")
    refused = site.client.post(f"/v1/runs/{run}/rerun", json={"limits": {"processes": 0}})
    assert refused.json["errors"][0]["pointer"] == "#/limits/processes"
    assert len(site.client.get("/v1/runs").json["items"]) == 1


def test_repeating_is_done_once_with_an_idempotency_key(site):
    run = site.submit()
    sent = [site.client.post(f"/v1/runs/{run}/rerun", headers={"Idempotency-Key": "again"}).json for _ in range(2)]
    assert sent[0]["id"] == sent[1]["id"] != run


def test_of_two_changes_of_one_state_the_second_is_refused_though_both_had_read_it(site):
    from store.runs import lifecycle

    run = site.submit()
    with site.context.database.read() as transaction:
        seen = lifecycle.get(transaction, run)
    done = []
    for labels in ({"by": "first"}, {"by": "second"}):
        with site.context.database.begin() as transaction:
            done.append(lifecycle.change(transaction, seen, labels=labels) is not None)
    assert done == [True, False]
    assert site.client.get(f"/v1/runs/{run}").json["labels"] == {"by": "first"}
