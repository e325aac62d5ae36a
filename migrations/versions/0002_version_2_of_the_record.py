# ruff: noqa: E501, S608 - comments of columns are sentences on one line; the SQL is made of our own words
"""Tables and columns for version 2 of the record: modes, watched calls, steps, histograms, gradients sent, origins.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: what is new may be NULL.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

I2, I4, I8 = sa.SmallInteger(), sa.Integer(), sa.BigInteger()
F4, F8 = sa.REAL(), sa.Double()
TEXT, BOOL = sa.Text(), sa.Boolean()
JSON = sa.JSON().with_variant(JSONB(), "postgresql")

TABLES = ("mode", "watched_call", "step", "histogram", "grad_input", "origin")

KINDS_1 = "kind in ('step', 'zero_grad')"
KINDS_2 = "kind in ('step', 'zero_grad', 'clip_grad_norm', 'clip_grad_value', 'scheduler_step', 'scaler_scale', 'scaler_unscale', 'scaler_step', 'scaler_update', 'add_param_group', 'load_state_dict')"

COMMENTS = (
    ("record", "schema_version", "Version of the record's format; NULL: not even its header came.", "Version of the format it was first written in; NULL: not even its header came."),
    ("record", "streams", "stdout and stderr: tail and total_bytes, from the pipe.", "stdout and stderr: tail and total_bytes, from the pipe; recorded: the record's own."),
    ("record", "hooks", "Hooks that the program registered; always empty so far.", "Hooks that the program registered."),
    ("record", "growth", "Live nodes and bytes per backward call of a site; always empty so far.", "Live nodes and held bytes after each backward call."),
    ("optimizer_event", "optimizer", "Whose.", "Whose; NULL: clipping and scaling that name none."),
    ("optimizer_event", "kind", "step or zero_grad.", "step, zero_grad, clip_grad_norm, scheduler_step, scaler_update, ..."),
    ("optimizer_event", "set_to_none", "Of zero_grad; NULL: a step.", "Of zero_grad; NULL: another kind."),
    ("optimizer_event", "scale", "Of a gradient scaler; NULL: none.", "Of a gradient scaler: its factor after it; NULL: none, or not read."),
)  # fmt: skip
"""Table, column, comment before, comment since; SQLite keeps none."""

EVENTS_1 = "A step or zero_grad of an optimizer."
EVENTS_2 = "A step of an optimizer, or what belongs to one: zero_grad, clipping, scheduler, gradient scaler."

COLUMNS: tuple[tuple[str, str, Any, str, str], ...] = (
    ("node", "candidates", JSON, "JSON", "Sites that may have made it, if not settled; NULL: of a version 1 record."),
    ("backward_call", "returned_grads", JSON, "JSON", "Of autograd.grad: statistics of what came back; NULL: not measured."),
    ("optimizer_event", "scale_before", F8, "DOUBLE", "Of a gradient scaler: its factor before; NULL: none, or not read."),
    ("optimizer_event", "found_inf", BOOL, "BOOLEAN", "Of a gradient scaler: a gradient was not finite; NULL: another kind, or not read."),
    ("optimizer_event", "skipped", BOOL, "BOOLEAN", "Of scaler_step: it left the optimizer's step out; NULL: another kind."),
    ("optimizer_event", "class", TEXT, "TEXT", "Of the scheduler or scaler; NULL: another kind."),
    ("optimizer_event", "clip_limit", F8, "DOUBLE", "Of clipping: the greatest norm or value allowed; NULL: another kind."),
    ("optimizer_event", "norm_type", F8, "DOUBLE", "Of clip_grad_norm: the order of the norm; NULL: another kind."),
    ("optimizer_event", "total_norm", F8, "DOUBLE", "Of clip_grad_norm: the norm before; NULL: another kind, or not read."),
    ("optimizer_event", "learning_rates", JSON, "JSON", "After it, by group; empty: not read; NULL: of a record of version 1."),
)  # fmt: skip
"""Table, column, type, the type's name in SQLite, comment."""


def upgrade() -> None:
    """Make what is new, and let optimizer_event hold more."""
    if op.get_bind().dialect.name == "sqlite":
        for table in sorted({column[0] for column in COLUMNS}):
            _rewrite(table, lambda sql, table=table: _later(sql, table))
    else:
        for table, name, kind, _, comment in COLUMNS:
            op.add_column(table, sa.Column(name, kind, comment=comment))
        _kinds(KINDS_2)
        op.alter_column("optimizer_event", "optimizer", nullable=True)
        _comments(1)
    _asked()
    _course()


def downgrade() -> None:
    """Drop what was new; optimizer events of the new kinds are lost."""
    for table in TABLES:
        op.drop_table(table)
    op.execute(sa.text(f"DELETE FROM optimizer_event WHERE NOT {KINDS_1} OR optimizer IS NULL"))
    if op.get_bind().dialect.name == "sqlite":
        for table in sorted({column[0] for column in COLUMNS}):
            _rewrite(table, lambda sql, table=table: _earlier(sql, table))
        return
    for table, name, *_ in COLUMNS:
        op.drop_column(table, name)
    _kinds(KINDS_1)
    op.alter_column("optimizer_event", "optimizer", nullable=False)
    _comments(0)


def _kinds(condition: str) -> None:
    op.drop_constraint(op.f("ck_optimizer_event_kind"), "optimizer_event", type_="check")
    op.create_check_constraint(op.f("ck_optimizer_event_kind"), "optimizer_event", sa.text(condition))


def _comments(since: int) -> None:
    for table, column, *texts in COMMENTS:
        op.alter_column(table, column, comment=texts[since])
    op.create_table_comment("optimizer_event", (EVENTS_1, EVENTS_2)[since])


def _later(sql: str, table: str) -> str:
    """The CREATE statement of SQLite with the new columns, before the constraints."""
    added = "".join(f"\t{name} {kind}, \n" for of, name, _, kind, _ in COLUMNS if of == table)
    at = sql.index("\tCONSTRAINT ")
    sql = sql[:at] + added + sql[at:]
    return sql.replace("\toptimizer INTEGER NOT NULL,", "\toptimizer INTEGER,").replace(KINDS_1, KINDS_2)


def _earlier(sql: str, table: str) -> str:
    for of, name, _, kind, _ in COLUMNS:
        if of == table:
            sql = sql.replace(f"\t{name} {kind}, \n", "")
    if table == "optimizer_event":
        sql = sql.replace("\toptimizer INTEGER,", "\toptimizer INTEGER NOT NULL,").replace(KINDS_2, KINDS_1)
    return sql


def _rewrite(table: str, change: Callable[[str], str]) -> None:
    """Make a table of SQLite anew with another CREATE statement, and move its rows: ALTER TABLE can do less."""
    bind = op.get_bind()
    found = f"select name, sql from sqlite_master where tbl_name = '{table}' and sql is not null and type = "
    ((_, sql),) = bind.exec_driver_sql(found + "'table'").all()
    indices = bind.exec_driver_sql(found + "'index'").all()
    for name, _ in indices:
        bind.exec_driver_sql(f"DROP INDEX {name}")
    bind.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {table}_before")
    bind.exec_driver_sql(change(sql))
    columns = [row[1] for row in bind.exec_driver_sql(f"PRAGMA table_info({table}_before)").all()]
    now = {row[1] for row in bind.exec_driver_sql(f"PRAGMA table_info({table})").all()}
    common = ", ".join(f'"{name}"' for name in columns if name in now)
    bind.exec_driver_sql(f"INSERT INTO {table} ({common}) SELECT {common} FROM {table}_before")
    bind.exec_driver_sql(f"DROP TABLE {table}_before")
    for _, statement in indices:
        bind.exec_driver_sql(statement)


def _made(name: str, *columns: Any, key: tuple[str, ...], comment: str, wide: bool = False) -> None:
    op.create_table(
        name,
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column("attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."),
        *columns,
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", *key, name=f"pk_{name}"),
        comment=comment,
        sqlite_with_rowid=wide,
    )  # fmt: skip


def _index(table: str, column: str) -> None:
    op.create_index(f"{table}_{column}", table, ["part", "run_id", "attempt", column])


def _asked() -> None:
    _made(
        "mode",
        sa.Column("n", I4, nullable=False, comment="Its number, in order of time."),
        sa.Column("kind", TEXT, nullable=False, comment="grad, inference, autocast, training, anomaly or deterministic."),
        sa.Column("before", TEXT, nullable=False, comment="The mode before, as text."),
        sa.Column("after", TEXT, nullable=False, comment="The mode since, as text."),
        sa.Column("how", TEXT, nullable=False, comment="with, decorator, call or unknown."),
        sa.Column("switched_by", TEXT, comment="torch's function or class that did; NULL: not known."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("site", I4, comment="Where; NULL: outside the user's files."),
        sa.Column("moment", I4, comment="First moment under it; NULL: none."),
        sa.Column("until", I4, comment="First moment after it; NULL: it held to the end, or has none."),
        sa.Column("module", I4, comment="Of training: whose; NULL: another kind, or not recorded."),
        sa.Column("device", TEXT, comment="Of autocast: the device type; NULL: another kind."),
        sa.CheckConstraint("kind in ('grad', 'inference', 'autocast', 'training', 'anomaly', 'deterministic')", name=op.f("ck_mode_kind")),
        key=("n",),
        comment="A region of the run in which a mode of torch was another one.",
    )  # fmt: skip
    _made(
        "watched_call",
        sa.Column("n", I4, nullable=False, comment="Its number, in order of time."),
        sa.Column("function", TEXT, nullable=False, comment="torch's full name: torch.nn.functional.cross_entropy."),
        sa.Column("moment", I4, comment="First moment after it; NULL: the record ends inside it."),
        sa.Column("site", I4, comment="Where; NULL: outside the user's files."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("module_call", I4, comment="Innermost module call open then; NULL: none."),
        sa.Column("arguments", JSON, nullable=False, comment="Those that are no tensors, by parameter."),
        sa.Column("inputs", JSON, nullable=False, comment="Tensors handed in: name, tensor."),
        sa.Column("outputs", JSON, nullable=False, comment="Tensors that came back."),
        sa.Column("raised", BOOL, nullable=False, comment="It ended with an exception."),
        sa.Column("col", I4, comment="First column of the call, 1-based, in code points; NULL: not known."),
        key=("n",),
        comment="A call of a function that rules ask about: losses, softmax, detach, checkpoint, ...",
        wide=True,
    )  # fmt: skip
    _index("watched_call", "function")
    _index("watched_call", "site")


def _course() -> None:
    _made(
        "step",
        sa.Column("step", I4, nullable=False, comment="Its number, from 0."),
        sa.Column("sampled", BOOL, nullable=False, comment="It was captured in full."),
        sa.Column("why", TEXT, nullable=False, comment="Why it was, or not: all, first, 1-2-5, every, anomaly, after-anomaly, loop-left, not-sampled or skipped."),
        sa.Column("first_moment", I4, comment="First moment in it; NULL: none."),
        sa.Column("last_moment", I4, comment="Last moment in it; NULL: none."),
        sa.Column("site", I4, comment="The statement that ended it; NULL: not known."),
        sa.Column("loss", F8, comment="Value of the first root of its last backward call; NULL: not known."),
        sa.Column("loss_tensor", I4, comment="That root; NULL: it has no row."),
        sa.Column("grad_norm", F8, comment="L2 norm over all gradients before the optimizer's step; NULL: not measured."),
        sa.Column("parameters_without_grad", I4, comment="Tensors of the optimizer without a gradient; NULL: not counted."),
        sa.Column("backward_calls", I4, nullable=False, comment="How many ended in it."),
        sa.Column("learning_rate", F8, comment="Of the first group; NULL: no optimizer."),
        sa.Column("started_ns", I8, nullable=False, comment="Since the start of the record."),
        sa.Column("duration_ns", I8, nullable=False, comment="How long it took."),
        sa.Column("own_ns", I8, nullable=False, comment="Of that, ours."),
        sa.Column("anomaly", TEXT, comment="non-finite, exception or gradient-stopped; NULL: nothing was seen."),
        sa.Column("tensor", I4, comment="The tensor with that anomaly; NULL: none in particular."),
        key=("step",),
        comment="One training step: the time series of a run.",
    )  # fmt: skip
    _made(
        "histogram",
        sa.Column("tensor", I4, nullable=False, comment="Whose elements."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column("of", TEXT, nullable=False, comment="value, grad, or arrived: the gradient that reached it in a backward call."),
        sa.Column("low", F8, nullable=False, comment="Lower edge of the first bin."),
        sa.Column("high", F8, nullable=False, comment="Upper edge of the last bin."),
        sa.Column("counts", JSON, nullable=False, comment="Elements per bin."),
        sa.Column("below", I8, nullable=False, comment="Finite elements under low."),
        sa.Column("above", I8, nullable=False, comment="Finite elements over high."),
        sa.Column("nonfinite", I8, nullable=False, comment="NaN and infinities."),
        sa.Column("kind", TEXT, nullable=False, comment="exact or sampled."),
        sa.Column("scale", TEXT, nullable=False, comment="linear: bins of one width; log2: of absolute values, each edge a multiple of the last."),
        sa.Column("zeros", I8, nullable=False, comment="On a log2 scale: elements that are 0, which lie in no bin."),
        sa.CheckConstraint("of in ('value', 'grad', 'arrived')", name=op.f("ck_histogram_of")),
        key=("tensor", "moment", "of"),
        comment="How the elements of a tensor, or of its gradient, are distributed.",
        wide=True,
    )  # fmt: skip
    _made(
        "grad_input",
        sa.Column("call", I4, nullable=False, comment="Which backward call."),
        sa.Column("node", I4, nullable=False, comment="Which node."),
        sa.Column("slot", I4, nullable=False, comment="Place in its next_functions: to which the gradient went."),
        sa.Column("hole", BOOL, nullable=False, comment="It sent none there."),
        sa.Column("norm", F4, comment="L2 norm of the gradient that was sent; NULL: not measured or not defined."),
        sa.Column("sum", F4, comment="Its sum; NULL likewise."),
        sa.Column("min", F4, comment="Its least element; NULL likewise."),
        sa.Column("max", F4, comment="Its greatest element; NULL likewise."),
        sa.Column("nan", I8, comment="Elements that are NaN; NULL: not measured."),
        sa.Column("inf", I8, comment="Elements that are infinite; NULL: not measured."),
        sa.Column("zeros", I8, comment="Elements that are 0; NULL: not measured."),
        sa.Column("counted", I8, comment="Elements looked at; NULL: not measured."),
        sa.Column("stat_kind", TEXT, comment="exact or sampled; NULL: not measured."),
        key=("call", "node", "slot"),
        comment="A gradient that a node sent on in one backward call.",
    )  # fmt: skip
    _made(
        "origin",
        sa.Column("n", I4, nullable=False, comment="Its number."),
        sa.Column("direction", TEXT, nullable=False, comment="forward, or backward: inside a backward call."),
        sa.Column("op", TEXT, nullable=False, comment="The ATen op: aten.log.default."),
        sa.Column("what", TEXT, nullable=False, comment="nan or inf."),
        sa.Column("site", I4, comment="The statement that ran it; NULL: outside the user's files."),
        sa.Column("moment", I4, comment="First moment after it in the first run; NULL: none."),
        sa.Column("call", I4, comment="Of backward: the call; NULL: forward, or not matched."),
        sa.Column("tensor", I4, comment="The tensor of the first run that its result is; NULL: a value inside a library."),
        sa.Column("inputs", TEXT, nullable=False, comment="Shapes, dtypes and ranges of its inputs."),
        sa.Column("diverged", BOOL, nullable=False, comment="The second run did not follow the first one."),
        sa.Column("why", TEXT, comment="What made it diverge, or why no op was found; NULL: nothing to add."),
        sa.CheckConstraint("direction in ('forward', 'backward')", name=op.f("ck_origin_direction")),
        key=("n",),
        comment="Where the first NaN or infinity was made, by a second run.",
        wide=True,
    )  # fmt: skip
