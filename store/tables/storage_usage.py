# ruff: noqa: S608 - the SQL is built from constants only
"""How many bytes each tenant stores: every change of them beside the rows that changed, written by triggers.

So no statement can forget to count, nor one of the release before. Each change is a separate row: two writers of one
tenant must not wait for each other; the sum of the rows is what the tenant has, and the reaper folds them
(`store.access.shares.fold`). A row counts with the bytes of its long columns and a flat rest. Rows of records are not
watched: `run.record_bytes` says what they take.

    INSERT INTO snippet      entry a.py               ->  stored_bytes (7, 'programs', 516)
    INSERT INTO snippet_file path a.py, 900 bytes     ->  stored_bytes (7, 'programs', 1160)
    DELETE FROM snippet_file the same                 ->  stored_bytes (7, 'programs', -1160)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import event

from store.tables.base.metadata import METADATA
from store.tables.base.types import i8, identity, is_one_of, text

KINDS: Final = ("programs", "runs", "records", "findings", "audits", "webhooks", "projects")

stored_bytes: Final = sa.Table(
    "stored_bytes",
    METADATA,
    identity(),
    i8("tenant_id", "Whose; no foreign key, for its check would lock the tenant's row in every write."),
    text("kind", "Of what: programs, runs, records, findings, audits, webhooks or projects."),
    i8("bytes", "By how many it grew; less than 0: it shrank."),
    is_one_of("kind", KINDS),
    comment="What each tenant stores, change by change: the sum of its rows is what it has.",
)
sa.Index("stored_bytes_of_tenant", stored_bytes.c.tenant_id, stored_bytes.c.kind, stored_bytes.c.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTable:
    """A table whose rows count.

    Attributes:
        rest: Bytes of a row without its long columns.
        long: Columns of text, JSON or bytes.
        owner: The tenant's number; `{row}` stands for the row.
        changing: Columns that an UPDATE may change; empty: what counts of a row never changes.
        size: SQL that takes the place of `rest` and `long`; None: those.
    """

    table: str
    kind: str
    rest: int = 0
    long: tuple[str, ...] = ()
    owner: str = "{row}.tenant_id"
    changing: tuple[str, ...] = ()
    size: str | None = None


_of_audit: Final = "(SELECT tenant_id FROM audit WHERE id = {row}.audit_id)"
_of_try: Final = (
    "(SELECT w.tenant_id FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.id = {row}.delivery_id)"
)
COUNTED: Final = (
    CountedTable(table="snippet", kind="programs", rest=512, long=("entry",)),
    CountedTable(
        table="snippet_file",
        kind="programs",
        rest=256,
        long=("path", "body"),
        owner="(SELECT tenant_id FROM snippet WHERE id = {row}.snippet_id)",
    ),
    CountedTable(
        table="run",
        kind="runs",
        rest=2048,
        long=("labels", "arguments", "rules", "custom_id"),
        changing=("labels",),
    ),
    CountedTable(
        table="run",
        kind="records",
        size="CASE WHEN {row}.record_state = 'expired' THEN 0 ELSE {row}.record_bytes END",
        changing=("record_bytes", "record_state"),
    ),
    CountedTable(
        table="recorder",
        kind="runs",
        rest=256,
        long=("environment",),
        owner="(SELECT tenant_id FROM run WHERE id = {row}.run_id)",
    ),
    CountedTable(
        table="finding",
        kind="findings",
        rest=512,
        long=("message", "location", "related", "stacks", "evidence", "fixes", "consequences"),
    ),
    CountedTable(table="policy", kind="audits", rest=256, long=("name", "body")),
    CountedTable(table="audit", kind="audits", rest=512, long=("name", "labels")),
    CountedTable(table="audit_item", kind="audits", rest=128, long=("custom_id", "problem"), owner=_of_audit),
    CountedTable(table="audit_verdict", kind="audits", rest=256, long=("counts",), owner=_of_audit),
    CountedTable(table="audit_cell", kind="audits", rest=128, long=("rule",), owner=_of_audit),
    CountedTable(table="webhook", kind="webhooks", rest=1024, long=("url", "events"), changing=("url", "events")),
    CountedTable(
        table="delivery",
        kind="webhooks",
        rest=256,
        owner="(SELECT tenant_id FROM webhook WHERE id = {row}.webhook_id)",
    ),
    CountedTable(
        table="delivery_try",
        kind="webhooks",
        rest=128,
        long=("address", "error", "answer"),
        owner=_of_try,
    ),
    CountedTable(table="project", kind="projects", rest=512, long=("name", "settings"), changing=("name", "settings")),
)
_BYTES: Final = {"sqlite": "length(CAST({row}.{column} AS BLOB))", "postgresql": "octet_length({row}.{column}{text})"}


def _size(counted: CountedTable, dialect: str, row: str) -> str:
    if counted.size is not None:
        return counted.size.format(row=row)
    cast = "" if counted.table == "snippet_file" else "::text"
    lengths = [_BYTES[dialect].format(row=row, column=column, text=cast) for column in counted.long]
    return " + ".join([str(counted.rest), *(f"coalesce({length}, 0)" for length in lengths)])


def _sqlite(counted: CountedTable) -> list[str]:
    def trigger(word: str, on: str, row: str, change: str) -> str:
        owner = counted.owner.format(row=row)
        return (
            f"CREATE TRIGGER stored_{counted.table}_{counted.kind}_{word} AFTER {on} ON {counted.table}\n"
            f"BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)\n"
            f"SELECT {owner}, '{counted.kind}', {change} WHERE {change} <> 0; END"
        )

    new, old = _size(counted, "sqlite", "new"), _size(counted, "sqlite", "old")
    made = [trigger("insert", "INSERT", "new", new), trigger("delete", "DELETE", "old", f"-({old})")]
    if counted.changing:
        made.append(trigger("update", f"UPDATE OF {', '.join(counted.changing)}", "new", f"{new} - ({old})"))
    return made


def _postgresql(counted: CountedTable) -> list[str]:
    name = f"stored_{counted.table}_{counted.kind}"
    update = f" OR UPDATE OF {', '.join(counted.changing)}" if counted.changing else ""
    events = f"INSERT OR DELETE{update}"
    return [
        f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := {_size(counted, "postgresql", "new")};
    owner := {counted.owner.format(row="new")};
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - ({_size(counted, "postgresql", "old")});
    owner := {counted.owner.format(row="old")};
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, '{counted.kind}', change);
  END IF;
  RETURN NULL;
END $body$""",
        f"CREATE TRIGGER {name} AFTER {events} ON {counted.table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


for _one in COUNTED:
    for _dialect, _made in (("sqlite", _sqlite(_one)), ("postgresql", _postgresql(_one))):
        for _statement in _made:
            event.listen(METADATA, "after_create", sa.DDL(_statement.replace("%", "%%")).execute_if(dialect=_dialect))
