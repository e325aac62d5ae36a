# ruff: noqa: S608 - the SQL is made of our own words
"""What each tenant stores, counted by triggers; when a program is asked after; why a record is gone.

What is there is counted once, here. Frozen. It imports nothing of ours. Code of the release before can write to this
schema: what is new may be NULL, and its rows are counted too; a program that it stores is never asked after.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TIME = sa.String().with_variant(TIMESTAMP(timezone=True, precision=3), "postgresql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEPT = "Then it is asked whether a run still keeps its files; NULL: they are gone."
GONE = "Why its record is gone: kept-until, database-full or deleted; NULL: it is there, or nobody noted why."
MAY = {False: "Bytes of records kept.", True: "Bytes that it may store, of records and all else."}
OF_AUDIT = "(SELECT tenant_id FROM audit WHERE id = {row}.audit_id)"
OF_TRY = "(SELECT w.tenant_id FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.id = {row}.delivery_id)"
OWNERS = {
    "snippet_file": "(SELECT tenant_id FROM snippet WHERE id = {row}.snippet_id)",
    "recorder": "(SELECT tenant_id FROM run WHERE id = {row}.run_id)",
    "audit_item": OF_AUDIT,
    "audit_verdict": OF_AUDIT,
    "audit_cell": OF_AUDIT,
    "delivery": "(SELECT tenant_id FROM webhook WHERE id = {row}.webhook_id)",
    "delivery_try": OF_TRY,
}
RECORD = "CASE WHEN {row}.record_state = 'expired' THEN 0 ELSE {row}.record_bytes END"
FINDING = ("message", "location", "related", "stacks", "evidence", "fixes", "consequences")
COUNTED = (
    ("snippet", "programs", 512, ("entry",), ()),
    ("snippet_file", "programs", 256, ("path", "body"), ()),
    ("run", "runs", 2048, ("labels", "arguments", "rules", "custom_id"), ("labels",)),
    ("run", "records", 0, (), ("record_bytes", "record_state")),
    ("recorder", "runs", 256, ("environment",), ()),
    ("finding", "findings", 512, FINDING, ()),
    ("policy", "audits", 256, ("name", "body"), ()),
    ("audit", "audits", 512, ("name", "labels"), ()),
    ("audit_item", "audits", 128, ("custom_id", "problem"), ()),
    ("audit_verdict", "audits", 256, ("counts",), ()),
    ("audit_cell", "audits", 128, ("rule",), ()),
    ("webhook", "webhooks", 1024, ("url", "events"), ("url", "events")),
    ("delivery", "webhooks", 256, (), ()),
    ("delivery_try", "webhooks", 128, ("address", "error", "answer"), ()),
    ("project", "projects", 512, ("name", "settings"), ("name", "settings")),
)
"""Table, kind, bytes of a row without its long columns, these, and columns that an UPDATE may change."""


def upgrade() -> None:
    """Add the columns, the table and its triggers, and count what is there."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    if sqlite:
        _rewrite("run", "\trules JSON, \n", "\trules JSON, \n\trecord_gone TEXT, \n")
        _rewrite(
            "snippet", "\tcreated_at VARCHAR NOT NULL, \n", "\tcreated_at VARCHAR NOT NULL, \n\tkept_until VARCHAR, \n"
        )
    else:
        op.add_column("run", sa.Column("record_gone", sa.Text(), comment=GONE))
        op.add_column("snippet", sa.Column("kept_until", TIME, comment=KEPT))
        op.alter_column("tenant", "max_record_bytes", comment=MAY[True])
    later = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+7 days')" if sqlite else "now() + interval '7 days'"
    has_files = "EXISTS (SELECT 1 FROM snippet_file f WHERE f.snippet_id = snippet.id)"
    op.execute(sa.text(f"UPDATE snippet SET kept_until = {later} WHERE {has_files}".replace(":", "\\:")))
    kept = sa.text("kept_until is not null")
    op.create_index("snippet_kept", "snippet", ["kept_until"], postgresql_where=kept, sqlite_where=kept)
    _table()
    dialect = "sqlite" if sqlite else "postgresql"
    for one in COUNTED:
        table, kind = one[0], one[1]
        owner, size = _owner(table, table), _size(dialect, one, table)
        count = f"SELECT {owner}, '{kind}', sum({size}) FROM {table} GROUP BY 1 HAVING sum({size}) <> 0"
        op.get_bind().exec_driver_sql(f"INSERT INTO stored_bytes (tenant_id, kind, bytes) {count}")
        for statement in (_sqlite if sqlite else _postgresql)(one):
            op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Drop them: nothing but records counts any more, and no program goes but with its last run."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    for table, kind, _, _, changing in COUNTED:
        name = f"stored_{table}_{kind}"
        if sqlite:
            for word in ("insert", "delete", *(["update"] if changing else [])):
                op.execute(sa.text(f"DROP TRIGGER {name}_{word}"))
        else:
            op.execute(sa.text(f"DROP TRIGGER {name} ON {table}"))
            op.execute(sa.text(f"DROP FUNCTION {name}()"))
    op.drop_table("stored_bytes")
    op.drop_index("snippet_kept", "snippet")
    if sqlite:
        op.execute(sa.text("UPDATE snippet SET kept_until = NULL"))
        op.execute(sa.text("UPDATE run SET record_gone = NULL"))
        _rewrite("snippet", "\tkept_until VARCHAR, \n", "")
        _rewrite("run", "\trecord_gone TEXT, \n", "")
    else:
        op.alter_column("tenant", "max_record_bytes", comment=MAY[False])
        op.drop_column("snippet", "kept_until")
        op.drop_column("run", "record_gone")


def _table() -> None:
    kinds = "kind in ('programs', 'runs', 'records', 'findings', 'audits', 'webhooks', 'projects')"
    whose = "Whose; no foreign key, for its check would lock the tenant's row in every write."
    op.create_table(
        "stored_bytes",
        sa.Column("id", ID, primary_key=True, comment="Number of the row; never shown outside."),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False, comment=whose),
        sa.Column(
            "kind",
            sa.Text(),
            nullable=False,
            comment="Of what: programs, runs, records, findings, audits, webhooks or projects.",
        ),
        sa.Column("bytes", sa.BigInteger(), nullable=False, comment="By how many it grew; less than 0: it shrank."),
        sa.CheckConstraint(kinds, name="kind"),
        sa.PrimaryKeyConstraint("id", name="pk_stored_bytes"),
        comment="What each tenant stores, change by change: the sum of its rows is what it has.",
    )
    op.create_index("stored_bytes_of_tenant", "stored_bytes", ["tenant_id", "kind", "bytes"])


def _owner(table: str, row: str) -> str:
    return OWNERS.get(table, "{row}.tenant_id").format(row=row)


def _size(dialect: str, one: tuple, row: str) -> str:
    table, kind, rest, long, _ = one
    if kind == "records":
        return RECORD.format(row=row)
    if dialect == "sqlite":
        lengths = [f"length(CAST({row}.{column} AS BLOB))" for column in long]
    else:
        cast = "" if table == "snippet_file" else "::text"
        lengths = [f"octet_length({row}.{column}{cast})" for column in long]
    return " + ".join([str(rest), *(f"coalesce({length}, 0)" for length in lengths)])


def _sqlite(one: tuple) -> list[str]:
    table, kind, _, _, changing = one

    def trigger(word: str, on: str, row: str, change: str) -> str:
        return (
            f"CREATE TRIGGER stored_{table}_{kind}_{word} AFTER {on} ON {table}\n"
            f"BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)\n"
            f"SELECT {_owner(table, row)}, '{kind}', {change} WHERE {change} <> 0; END"
        )

    new, old = _size("sqlite", one, "new"), _size("sqlite", one, "old")
    made = [trigger("insert", "INSERT", "new", new), trigger("delete", "DELETE", "old", f"-({old})")]
    if changing:
        made.append(trigger("update", f"UPDATE OF {', '.join(changing)}", "new", f"{new} - ({old})"))
    return made


def _postgresql(one: tuple) -> list[str]:
    table, kind, _, _, changing = one
    name = f"stored_{table}_{kind}"
    update = f" OR UPDATE OF {', '.join(changing)}" if changing else ""
    return [
        f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := {_size("postgresql", one, "new")};
    owner := {_owner(table, "new")};
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - ({_size("postgresql", one, "old")});
    owner := {_owner(table, "old")};
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, '{kind}', change);
  END IF;
  RETURN NULL;
END $body$""",
        f"CREATE TRIGGER {name} AFTER INSERT OR DELETE{update} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


def _rewrite(table: str, old: str, new: str) -> None:
    """Change the first such place of a CREATE statement, as 0006 does: rows stay as they are."""
    bind = op.get_bind()
    which = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table")
    sql = bind.execute(which, {"table": table}).scalar_one()
    if old not in sql:
        raise ValueError(f"{table}: {old!r} is not in its statement")
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    changed = {"sql": sql.replace(old, new, 1), "table": table}
    bind.execute(sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = :table"), changed)
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
