"""Watched runs: what a recorder said of its job, and the frames that it sent."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.tables.base.metadata import METADATA
from store.tables.base.types import blob, i4, i8, json, refers, text, time

recorder: Final = sa.Table(
    "recorder",
    METADATA,
    refers("run_id", "run", "Which watched run."),
    blob("asked", "SHA-256 of the request that made it: the same once more is no error, another is."),
    json("environment", "Where the job runs, in the recorder's words: text by name."),
    i4("next_frame", "Number of the frame that is wanted next: so many have come."),
    i8("rows", "Rows in them."),
    text("last", "What the last frame was: header, end or a table; NULL: none has come.", null=True),
    json("told", "How the job ended, as its recorder told; NULL: it has not told.", null=True),
    sa.PrimaryKeyConstraint("run_id"),
    comment="The recorder of a watched run.",
)

frame: Final = sa.Table(
    "frame",
    METADATA,
    refers("run_id", "run", "Of which watched run."),
    i4("n", "Its number, from 0."),
    blob("sha256", "Of its bytes: the same number with other bytes is refused."),
    i8("size_bytes", "How many bytes."),
    time("at", "When it came."),
    blob("body", "Its bytes; NULL: its run has ended, and the record has its rows.", null=True),
    sa.PrimaryKeyConstraint("run_id", "n"),
    comment="A frame that a recorder sent.",
)
_kept: Final = sa.text("body is not null")
sa.Index("frame_kept", frame.c.run_id, postgresql_where=_kept, sqlite_where=_kept)
sa.Index("frame_at", frame.c.at)
