# ruff: noqa: S608 - the SQL is made of our own words
"""On PostgreSQL the 26 record tables are partitioned by month; what was in one becomes its first partition.

Frozen. It imports nothing of ours. Nothing is rewritten on the way up: ATTACH reads the key of each row once, while
writers wait, and equal indices become the partitioned ones'. A database without records gets empty partitions instead.
On the way down every row is written again: hours at 1e10 snapshots. Code of the release before works with this schema
as long as months are made ahead, which the reaper of this release does, and this revision for three.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = (
    "backward_call", "binding", "edge", "grad_input", "histogram", "inplace_event", "leaf_grad", "mode", "module",
    "module_call", "moment", "node", "node_pass", "operation", "optimizer", "optimizer_event", "origin", "record",
    "retention", "saved", "site", "small_value", "snapshot_chunk", "step", "tensor", "watched_call",
)  # fmt: skip
AHEAD = 2
PINNED = sa.text("pinned")


def upgrade() -> None:
    """Make the parents, and attach what is there."""
    op.create_index("run_pinned", "run", ["part"], postgresql_where=PINNED, sqlite_where=PINNED)
    if op.get_bind().dialect.name == "sqlite":
        return
    oldest, newest, now = _months()
    view = _without_view()
    for table in TABLES:
        _partitioned(table, oldest, max(newest, now), full=newest >= 0)
        for month in range(max(newest, now) + 1, now + AHEAD + 1) if newest >= 0 else range(now, now + AHEAD + 1):
            _do(f'CREATE TABLE "{_name(table, month)}" PARTITION OF "{table}" FOR VALUES IN ({month})')
    _do(*view)


def downgrade() -> None:
    """Write every row into one table again."""
    op.drop_index("run_pinned", "run")
    if op.get_bind().dialect.name == "sqlite":
        return
    view = _without_view()
    for table in TABLES:
        _whole(table)
    _do(*view)


def _months() -> tuple[int, int, int]:
    """The oldest and the newest month that a record has (newest -1: there is none), and the one that it is now."""
    each = " UNION ALL ".join(f'SELECT min(part) AS a, max(part) AS b FROM "{table}"' for table in TABLES)
    oldest, newest = op.get_bind().exec_driver_sql(f"SELECT min(a), max(b) FROM ({each}) s").one()
    months = "(extract(year FROM n) - 2020) * 12 + extract(month FROM n) - 1"
    now = f"SELECT {months} FROM (SELECT now() AT TIME ZONE 'utc' AS n) s"
    this = int(op.get_bind().exec_driver_sql(now).scalar_one())
    return (this, -1, this) if newest is None else (oldest, newest, this)


def _name(table: str, month: int) -> str:
    return f"{table}_{2020 + month // 12}_{month % 12 + 1:02}"


def _do(*statements: str) -> None:
    for statement in statements:
        op.get_bind().exec_driver_sql(statement.replace("%", "%%"))


def _found(query: str, table: str) -> list[str]:
    return [row[0] for row in op.get_bind().exec_driver_sql(query.format(f"'{table}'::regclass")).all()]


def _without_view() -> list[str]:
    """Drop the view `snapshot`, which is bound to tables by number; what makes it again, and whom it was shown to."""
    (text,) = _found("SELECT pg_get_viewdef({})", "snapshot")
    made = [f"CREATE VIEW snapshot AS {text}", *_rights("snapshot")]
    _do("DROP VIEW snapshot")
    return made


def _rights(table: str) -> list[str]:
    """What others than its owner may do with it, as GRANT statements."""
    query = (
        "SELECT format('GRANT %%s ON %%I TO %%s', a.privilege_type, c.relname,"
        " CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)"
        " FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = {} AND a.grantee <> c.relowner"
    )
    return _found(query, table)


def _indices(table: str) -> list[str]:
    """What makes its primary key and its indices, by the same names."""
    key = f"SELECT 'ALTER TABLE \"{table}\" ADD CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid)"
    of_key = f"{key} FROM pg_constraint WHERE contype = 'p' AND conrelid = {{}}"
    rest = "SELECT replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') FROM pg_index"
    return [*_found(of_key, table), *_found(f"{rest} WHERE NOT indisprimary AND indrelid = {{}}", table)]


def _like(table: str, before: str, rest: str = "") -> list[str]:
    (comment,) = _found("SELECT quote_literal(obj_description({}))", before)
    columns = f'CREATE TABLE "{table}" (LIKE "{before}" INCLUDING ALL EXCLUDING INDEXES){rest}'
    return [columns, f'COMMENT ON TABLE "{table}" IS {comment}']


def _partitioned(table: str, oldest: int, newest: int, *, full: bool) -> None:
    """Put a parent above the table. `full`: the table becomes the partition of these months, named for the last."""
    indices, rights, first = _indices(table), _rights(table), _name(table, newest)
    names = _found("SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = {}", table)
    _do(f'ALTER TABLE "{table}" RENAME TO "{first}"')
    _do(*(f'ALTER INDEX "{name}" RENAME TO "{name.replace(table, first, 1)}"' for name in names))
    _do(*_like(table, first, " PARTITION BY LIST (part)"), *indices, *rights)
    if full:
        months = ", ".join(map(str, range(oldest, newest + 1)))
        _do(f'ALTER TABLE "{table}" ATTACH PARTITION "{first}" FOR VALUES IN ({months})')
    else:
        _do(f'DROP TABLE "{first}"')


def _whole(table: str) -> None:
    """One table of all partitions; its indices are made when the rows are there."""
    indices, rights, whole = _indices(table), _rights(table), f"{table}_whole"
    _do(*_like(whole, table), f'INSERT INTO "{whole}" SELECT * FROM "{table}"', f'DROP TABLE "{table}"')
    _do(f'ALTER TABLE "{whole}" RENAME TO "{table}"', *indices, *rights)
