"""The weekly digest: what it counts, for whom it is made, and that it is made once; on both databases."""

import datetime

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from store import tables
from store.access import projects
from store.webhooks import digest, outbox, signing, webhooks

MONDAY = digest.week_before(datetime.datetime.now(datetime.UTC))
IN_IT = f"{MONDAY + datetime.timedelta(days=3)}T12:00:00.000Z"
BEFORE = f"{MONDAY - datetime.timedelta(days=3)}T12:00:00.000Z"
SINCE = f"{MONDAY + datetime.timedelta(days=7)}T00:00:01.000Z"


@pytest.fixture
def hook(database):
    def make_webhook(project=None, events=(digest.KIND,)):
        given = {"url": "https://example.org", "events": list(events), "enabled": True, "project": project}
        with database.begin() as transaction:
            return webhooks.create(transaction, webhooks.Scope(), given, signing.new_seal(b"s" * 32))

    return make_webhook


@pytest.fixture
def groups(database, ended_run, a_judgement):
    """`groups(a={...}, b={...})`: groups of findings with these columns; their ids by these names."""
    ended_run(judgement=a_judgement)

    def make_groups(**wanted):
        with database.begin() as transaction:
            (known, *_) = transaction.execute(sa.select(tables.finding_group)).mappings().all()
            transaction.execute(sa.delete(tables.finding_group_day))
            transaction.execute(sa.delete(tables.finding_group))
            for n, (name, columns) in enumerate(wanted.items()):
                row = dict(known) | {"id": n + 1, "public_id": f"fg_{name}", "fingerprint": name, "rule": name}
                row |= {"state": "open", "state_at": None, "state_by": None, "first_seen_at": BEFORE, "runs": 1}
                transaction.execute(sa.insert(tables.finding_group).values(row | {"last_seen_at": IN_IT} | columns))

    return make_groups


@pytest.fixture
def write(database):
    """Makes what is missing; the bodies of all that were made."""

    def write_digests(monday=MONDAY):
        with database.begin() as transaction:
            missing = digest.find_missing(transaction, monday)
            assert digest.enqueue(transaction, missing) == len(missing)
            assert digest.enqueue(transaction, missing) == 0
            made = (
                sa.select(tables.outbox.c.body).where(tables.outbox.c.kind == digest.KIND).order_by(tables.outbox.c.id)
            )
            return transaction.execute(made).scalars().all()

    return write_digests


@pytest.mark.parametrize(
    ("now", "monday"),
    [
        ("2026-11-30T00:00:00+00:00", "2026-11-23"),
        ("2026-11-29T23:59:59+00:00", "2026-11-16"),
        ("2026-11-30T00:30:00+01:00", "2026-11-16"),
    ],
)
def test_the_week_is_the_last_one_that_is_over_in_utc(now, monday):
    assert str(digest.week_before(datetime.datetime.fromisoformat(now))) == monday


def test_a_digest_counts_what_became_of_groups_in_the_week_and_names_the_worst(hook, groups, write):
    hook()
    groups(
        new={"first_seen_at": IN_IT, "level": "note"},
        newer={"first_seen_at": SINCE, "last_seen_at": SINCE, "level": "error"},
        back={"state_at": IN_IT, "state_by": "run_1", "level": "warning", "runs": 2},
        back_before={"state_at": BEFORE, "state_by": "run_1", "level": "warning", "runs": 9},
        fixed={"state": "fixed", "state_at": IN_IT, "state_by": "user:ann"},
        fixed_before={"state": "fixed", "state_at": BEFORE, "state_by": "user:ann"},
        bad={"level": "error"},
        quiet={"level": "error", "last_seen_at": BEFORE},
        muted={"state": "suppressed", "level": "error"},
    )
    (body,) = write()
    assert body == {
        "project": "prj_default",
        "project_name": "default",
        "from": str(MONDAY),
        "to": str(MONDAY + datetime.timedelta(days=6)),
        "new": 1,
        "regressed": 1,
        "fixed": 1,
        "open": 5,
        "groups": [
            {"group": f"fg_{name}", "rule": name, "level": level, "runs": runs}
            for name, level, runs in [
                ("bad", "error", 1),
                ("back_before", "warning", 9),
                ("back", "warning", 2),
                ("new", "note", 1),
            ]
        ],
    }


def test_a_digest_is_made_once_a_week_and_not_of_nothing(hook, groups, write):
    groups(new={"first_seen_at": SINCE})
    hook()
    assert write() == []  # it was first seen after the week
    groups(new={"first_seen_at": IN_IT})
    (first,) = write()
    assert write() == [first]
    groups(new={"first_seen_at": IN_IT}, more={"first_seen_at": IN_IT})
    assert write() == [first]
    assert [body["from"] for body in write(MONDAY + datetime.timedelta(days=7))] == [
        str(MONDAY),
        str(MONDAY + datetime.timedelta(days=7)),
    ]


def test_a_digest_is_made_for_projects_whose_webhooks_want_it(database, hook, groups, write):
    groups(new={"first_seen_at": IN_IT})
    with database.begin() as transaction:
        other = projects.create(transaction, "other", {}, None)
    hook(project=other.id)
    hook(events=("run.ended",))
    assert write() == []
    mine = hook(project="prj_default")
    assert len(write()) == 1
    with database.begin() as transaction:
        outbox.plan(transaction)
        planned = transaction.execute(sa.select(tables.delivery.c.webhook_id)).scalars().all()
    assert planned == [mine.number]


def test_an_archived_project_has_no_digest(database, hook, groups, write):
    groups(new={"first_seen_at": IN_IT})
    hook()
    with database.begin() as transaction:
        projects.change(transaction, projects.first(transaction, 1), {"archived": True})
    assert write() == []


def test_projects_with_nothing_to_say_are_not_missing_and_cost_one_question(database, hook, groups):
    hook()
    groups(later={"first_seen_at": SINCE})

    def find_missing():
        asked = []
        with database.read() as transaction:
            event.listen(transaction, "before_cursor_execute", lambda *call: asked.append(call[2]))
            return digest.find_missing(transaction, MONDAY), len(asked)

    alone = find_missing()
    with database.begin() as transaction:
        for n in range(5):
            projects.create(transaction, f"quiet {n}", {}, None)
    assert find_missing() == alone == ([], alone[1])
    groups(new={"first_seen_at": IN_IT})
    assert [missing.subject for missing in find_missing()[0]] == ["prj_default"]
