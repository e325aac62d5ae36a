"""What tenants store is counted where it is written, and shared out where it is short; on both databases."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from store import tables
from store.access import quotas, shares, tenants
from store.access.shares import Shares
from store.audits import audits
from store.runs import snippets
from store.tables.storage_usage import COUNTED
from store.webhooks import webhooks


def stored_by_kind(database, tenant_id=1):
    with database.read() as reading:
        return {kind: size for kind, size in shares.stored_bytes_by_kind(reading, tenant_id=tenant_id).items() if size}


def counted_anew(database):
    """What is stored by the rows that are there, in Python: by tenant and kind."""
    with database.read() as reading:
        rows = {name: reading.execute(sa.select(tables.METADATA.tables[name])).mappings().all() for name in TABLES}
    by_id = {name: {row["id"]: row for row in found if "id" in row} for name, found in rows.items()}
    found: dict[tuple[int, str], int] = {}
    for counted in COUNTED:
        for row in rows[counted.table]:
            if counted.kind == "records":
                size = 0 if row["record_state"] == "expired" else row["record_bytes"]
            else:
                size = counted.rest + sum(length(database, counted.table, row, column) for column in counted.long)
            key = (owner(by_id, counted.table, row), counted.kind)
            found[key] = found.get(key, 0) + size
    return {key: size for key, size in found.items() if size}


TABLES = sorted({counted.table for counted in COUNTED})
UP = {
    "snippet_file": ("snippet_id", "snippet"),
    "recorder": ("run_id", "run"),
    "audit_item": ("audit_id", "audit"),
    "audit_verdict": ("audit_id", "audit"),
    "audit_cell": ("audit_id", "audit"),
    "delivery": ("webhook_id", "webhook"),
    "delivery_try": ("delivery_id", "delivery"),
}


def owner(by_id, table, row):
    while table in UP:
        column, table = UP[table]
        row = by_id[table][row[column]]
    return row["tenant_id"]


def length(database, table, row, column):
    """As the database itself keeps it."""
    value = row[column]
    if value is None:
        return 0
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, str):
        return len(value.encode())
    with database.read() as reading:
        cast = "length(cast(:value as blob))" if database.sqlite else "octet_length(cast(:value as jsonb)::text)"
        kind = tables.METADATA.tables[table].c[column].type
        query = sa.text(f"select {cast}").bindparams(sa.bindparam("value", type_=kind))
        return reading.execute(query, {"value": value}).scalar()


def in_all(database):
    with database.read() as reading:
        query = sa.select(
            tables.stored_bytes.c.tenant_id, tables.stored_bytes.c.kind, sa.func.sum(tables.stored_bytes.c.bytes)
        )
        found = {(tenant, kind): int(size) for tenant, kind, size in reading.execute(query.group_by(sa.text("1, 2")))}
    return {key: size for key, size in found.items() if size}


def test_all_that_is_written_changed_and_deleted_is_counted(database, ended_run, submit, change, a_judgement):
    first = stored_by_kind(database)
    assert set(first) == {"projects"}  # the first one, counted when the table was made
    run, other = ended_run(judgement=a_judgement), submit(labels={"a": "\u20ac"})
    with database.begin() as transaction:
        snippets.keep(transaction, {"b.py": "y = '\u20ac'\n"}, "b.py")
        new = audits.NewAudit(name="n", project_id=1, created_by="t", labels={"c": "d"})
        items = [
            audits.NewItem(custom_id="a", run_id=run.run_id),
            audits.NewItem(custom_id=None, problem={"code": "x"}),
        ]
        audits.create(transaction, new, items)
        given = {"url": "https://hooks.example/in", "events": ["run.ended"], "enabled": True, "project": None}
        hook = webhooks.create(transaction, webhooks.Scope(), given, b"seal")
    assert set(stored_by_kind(database)) == {
        "projects",
        "programs",
        "runs",
        "records",
        "findings",
        "audits",
        "webhooks",
    }
    assert in_all(database) == counted_anew(database)
    change(other, labels={"longer": "than before"})
    with database.begin() as transaction:
        webhooks.change(transaction, webhooks.Scope(), hook, {"url": "https://hooks.example/in/another/place"})
    assert in_all(database) == counted_anew(database)
    change(run, record_state="expired")
    with database.begin() as transaction:
        webhooks.delete(transaction, hook)
        for table in (tables.audit_item, tables.audit):
            transaction.execute(sa.delete(table))
    assert set(stored_by_kind(database)) == {"projects", "programs", "runs", "findings"}
    assert in_all(database) == counted_anew(database)


def test_what_a_transaction_takes_back_counts_nothing(database):
    def killed():
        with database.begin() as transaction:
            snippets.keep(transaction, {"b.py": "y = 1\n"}, "b.py")
            raise OSError("killed")

    before = in_all(database)
    with pytest.raises(OSError, match="killed"):
        killed()
    assert in_all(database) == before


def test_changes_are_folded_and_their_sum_stays(database, submit, monkeypatch):
    monkeypatch.setattr(shares, "FOLDED_AT_ONCE", 2)
    for n in range(5):
        submit(files={"train.py": f"x = {n}\n"})
    before = in_all(database)
    assert shares.fold(database) > 5
    with database.read() as reading:
        assert reading.execute(sa.select(sa.func.count()).select_from(tables.stored_bytes)).scalar() == len(before)
    assert in_all(database) == before
    assert shares.fold(database) == 0


def test_what_is_written_while_changes_are_folded_is_counted(database):
    def write(writer):
        for n in range(12):
            with database.begin() as transaction:
                snippets.keep(transaction, {"a.py": f"x = {writer, n}\n"}, "a.py")

    with ThreadPoolExecutor(3) as writers:
        at_work = [writers.submit(write, writer) for writer in range(3)]
        while not all(future.done() for future in at_work):
            shares.fold(database)
    assert [future.exception() for future in at_work] == [None] * 3
    shares.fold(database)
    assert in_all(database) == counted_anew(database)


def test_the_kinds_of_records_and_of_all_are_told_as_quotas(database, ended_run):
    ended_run()
    with database.read() as reading:
        had = {quota.name: quota for quota in quotas.quotas(reading)}
        stored_now = shares.stored_bytes_by_kind(reading)
    assert had["record_bytes"].used == stored_now["records"] > 0
    assert had["stored_bytes"].used == sum(stored_now.values()) > had["record_bytes"].used
    assert had["record_bytes"].allowed == had["stored_bytes"].allowed


@pytest.mark.parametrize(
    ("most", "used", "parts", "share", "over"),
    [
        (100, 95, {1: 60, 2: 30, 3: 5}, 100, set()),  # 95 are not more than 95
        (100, 105, {1: 60, 2: 40, 3: 5}, 50, {1}),  # 95 - 5 - 40
        (100, 100, {1: 50, 2: 50}, 47, {1, 2}),
        (100, 100, {1: 100}, 95, {1}),
        (100, 120, {1: 110, 2: 5, 3: 5}, 85, {1}),
        (100, 100, {}, 100, set()),
    ],
)
def test_a_share_is_what_is_left_when_those_with_less_have_theirs(most, used, parts, share, over):
    now = Shares(most=most, used=used, parts=parts)
    assert (now.share, now.tenants_over_share, now.full) == (share, over, used >= most)


def test_a_full_database_refuses_who_is_over_its_share_and_nobody_else(database, tmp_path):
    with database.begin() as transaction:
        other = tenants.create(transaction, "other")
        snippets.keep(transaction, {"a.py": "#" * 3_000_000}, "a.py", tenant_id=other)
    with database.read() as reading:
        most = shares.used_bytes(reading)
        room = quotas.Room(most_bytes=most)
        room.demand(reading)
        with pytest.raises(shares.DatabaseFull, match=r"^the database is full, and .* bytes of it are yours"):
            room.demand(reading, tenant_id=other)
        quotas.Room(most_bytes=most + 1).demand(reading, tenant_id=other)
        quotas.Room().demand(reading, tenant_id=other)
