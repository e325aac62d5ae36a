"""What the end of a run leaves in its own transaction, on both databases: groups of findings, and events to send."""

import dataclasses

import msgspec
import pytest
import sqlalchemy as sa

from backprobe.rules import Judgement
from store import tables
from store.database.ids import new_id
from store.findings import rejudging
from store.runs import completion, lifecycle


@pytest.fixture
def listening(database):
    """A webhook wants everything."""
    events = ["run.ended", "finding.new", "finding.returned"]
    values = {"public_id": new_id("wh"), "tenant_id": 1, "url": "https://example.org", "events": events}
    values |= {"secret": b"s", "enabled": True, "failures": 0, "created_at": tables.Now(), "version": 1}
    with database.begin() as transaction:
        transaction.execute(sa.insert(tables.webhook).values(values))


@pytest.fixture
def rows(database):
    """`rows(table)`: all of them, in order."""

    def read_findings(table):
        with database.read() as reading:
            return reading.execute(sa.select(table).order_by(table.c.id)).all()

    return read_findings


@pytest.fixture
def sent_events(rows):
    """`sent_events()`: kind and body of the events that are to leave."""
    return lambda: [(row.kind, row.body) for row in rows(tables.outbox)]


def only(judgement, *names, **change) -> Judgement:
    found = [msgspec.structs.replace(finding, **change) for finding in judgement.findings if finding.rule.name in names]
    return Judgement(findings=tuple(found), rules_judged=4, not_run=(), ruleset="rs_test")


def test_an_end_leaves_its_event_and_one_for_each_finding_that_is_new(
    listening, ended_run, sent_events, rows, a_judgement
):
    run = ended_run(judgement=a_judgement)
    groups = {row.rule: row for row in rows(tables.finding_group)}
    assert set(groups) == {"freed-graph", "non-leaf-grad-read", "other"}
    last = sent_events()[-1]
    assert last == (
        "run.ended",
        {"run": run.id, "status": "succeeded", "findings": {"error": 1, "warning": 1, "note": 1}},
    )
    assert {(kind, body["group"], body["rule"]) for kind, body in sent_events()[:-1]} == {
        ("finding.new", row.public_id, rule) for rule, row in groups.items()
    }
    assert {row.subject for row in rows(tables.outbox)} == {run.id, *(row.public_id for row in groups.values())}


def test_a_group_counts_the_runs_that_show_it_and_tells_of_the_last(ended_run, rows, a_judgement):
    first = ended_run(judgement=a_judgement)
    second = ended_run(judgement=only(a_judgement, "other", level="error", message="moved"))
    group = next(row for row in rows(tables.finding_group) if row.rule == "other")
    assert (group.runs, group.returned, group.state, group.level, group.message) == (2, 0, "open", "error", "moved")
    assert (group.first_run_id, group.last_run_id, group.version) == (first.run_id, second.run_id, 2)
    assert [row.runs for row in rows(tables.finding_group) if row.rule != "other"] == [1, 1]


@pytest.mark.parametrize("state", ["fixed", "acknowledged", "suppressed"])
def test_only_what_was_fixed_opens_when_it_is_seen_again(
    database, listening, ended_run, rows, sent_events, a_judgement, state
):
    ended_run(judgement=only(a_judgement, "other"))
    with database.begin() as transaction:
        set_state = {"state": state, "state_by": "user:anne", "reason": "done"}
        transaction.execute(sa.update(tables.finding_group).values(set_state))
    run = ended_run(judgement=only(a_judgement, "other"))
    (group,) = rows(tables.finding_group)
    came_back = state == "fixed"
    assert (group.state, group.returned) == ("open" if came_back else state, int(came_back))
    assert (group.state_by, group.reason) == ((run.id, None) if came_back else ("user:anne", "done"))
    kinds = [kind for kind, _ in sent_events()]
    assert kinds == ["finding.new", "run.ended", *(["finding.returned"] if came_back else []), "run.ended"]
    ended_run(judgement=only(a_judgement, "other"))
    assert rows(tables.finding_group)[0].returned == int(came_back)


def test_a_suppressed_finding_is_counted_and_told_to_nobody(
    database, listening, ended_run, rows, sent_events, a_judgement
):
    hidden = only(a_judgement, "other", suppressed={"line": 2, "reason": "wanted"})
    ended_run(judgement=hidden)
    assert ([row.runs for row in rows(tables.finding_group)], [kind for kind, _ in sent_events()]) == (
        [1],
        ["run.ended"],
    )
    with database.begin() as transaction:
        transaction.execute(sa.update(tables.finding_group).values(state="fixed"))
    ended_run(judgement=hidden)
    (group,) = rows(tables.finding_group)
    assert (group.runs, group.state) == (2, "fixed")


@pytest.mark.parametrize("hidden", range(3))
def test_groups_are_touched_in_order_of_their_fingerprints(ended_run, rows, a_judgement, hidden):
    ordered = sorted(a_judgement.findings, key=lambda finding: finding.fingerprint)
    ordered[hidden] = msgspec.structs.replace(ordered[hidden], suppressed={"line": 2, "reason": "wanted"})
    ended_run(judgement=dataclasses.replace(a_judgement, findings=tuple(ordered)))
    made = sorted(rows(tables.finding_group), key=lambda group: group.id)
    assert [group.fingerprint for group in made] == [finding.fingerprint for finding in ordered]


def test_an_end_that_is_refused_or_repeated_leaves_nothing(
    database, listening, submit, claim, sent_events, rows, a_judgement
):
    submit()
    held = claim(lease_seconds=-1.0)
    lifecycle.expire_leases(database)
    with pytest.raises(lifecycle.FencedOut):
        completion.finish(database, held, completion.Ending(status="succeeded"), None, a_judgement)
    assert (sent_events(), rows(tables.finding_group)) == ([], [])
    submit()
    held = claim()
    for _ in range(2):
        completion.finish(database, held, completion.Ending(status="succeeded"), None, a_judgement)
    assert [kind for kind, _ in sent_events()].count("run.ended") == 1
    assert [row.runs for row in rows(tables.finding_group)] == [1, 1, 1]


def test_an_end_that_fails_at_its_last_statement_leaves_nothing(
    database, listening, submit, claim, sent_events, monkeypatch
):
    last = completion.leave_event

    def broken(*given, **more):
        last(*given, **more)
        raise OSError("the connection is gone")

    monkeypatch.setattr(completion, "leave_event", broken)
    submit()
    with pytest.raises(OSError, match="gone"):
        completion.finish(database, claim(), completion.Ending(status="succeeded"), None, None)
    assert sent_events() == []


def test_every_other_end_is_told_too(database, listening, submit, claim, sent_events):
    canceled, late, lost = submit(), submit(queue_seconds=-1), submit(max_attempts=1, priority=0)
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, canceled.id)
    lifecycle.expire_queued(database)
    assert claim(lease_seconds=-1.0).public_id == lost.id
    lifecycle.expire_leases(database)
    told = [(body["run"], body["status"]) for _, body in sent_events()]
    assert told == [(canceled.id, "canceled"), (late.id, "lost"), (lost.id, "lost")]


def test_a_run_that_goes_back_to_the_queue_has_not_ended(database, listening, submit, claim, sent_events):
    submit()
    lifecycle.release(database, claim())
    assert sent_events() == []


def test_judging_again_counts_a_run_once_per_group_and_tells_nobody(
    database, listening, ended_run, rows, sent_events, a_judgement
):
    ended_run(judgement=only(a_judgement, "other"))
    before = sent_events()
    with database.read() as reading:
        (due,) = rejudging.older(reading, "rs_new")
    record = rejudging.record_of(database, due)
    assert record is not None
    rejudging.judged_again(database, due, record, a_judgement, {})
    assert sorted((row.rule, row.runs) for row in rows(tables.finding_group)) == [
        ("freed-graph", 1),
        ("non-leaf-grad-read", 1),
        ("other", 1),
    ]
    assert sent_events() == before


def test_nothing_is_written_where_nobody_listens(ended_run, rows, a_judgement):
    ended_run(judgement=a_judgement)
    assert rows(tables.outbox) == []
