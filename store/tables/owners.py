"""Who owns what, and the program: tenants, projects, snippets and their files."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.tables.base.metadata import METADATA
from store.tables.base.types import blob, flag, i2, i4, i8, identity, json, public_id, refers, text, time

tenant: Final = sa.Table(
    "tenant",
    METADATA,
    identity(),
    public_id("tnt"),
    text("name", "For people."),
    i4("max_queued", "Runs that may be queued at once; more are refused."),
    i4("max_running", "Runs that should run at once; a share, which simultaneous claims may pass by a few."),
    i4("weight", "Share in the claim: twice the weight, twice the runs when all wait."),
    i8("max_record_bytes", "Bytes that it may store, of records and all else."),
    i4("keep_days", "Days that a record is kept after its run has ended."),
    time("created_at", "When it was made."),
    time("disabled_at", "When it was shut; NULL: it is open.", null=True),
    i8(
        "max_gpu_seconds",
        "Seconds of the queue gpu that runs accepted in one month (UTC) may use; NULL: as many as they like.",
        null=True,
    ),
    comment="A customer; tenants see nothing of each other. Embedded there is one, `default`.",
)

project: Final = sa.Table(
    "project",
    METADATA,
    identity(),
    public_id("prj"),
    refers("tenant_id", "tenant", "Whose it is."),
    text("name", "For people; unique in its tenant."),
    json("settings", "The keys of [tool.backprobe] that hold for its runs."),
    i4("keep_days", "Days that a record is kept; NULL: as the tenant says.", null=True),
    time("created_at", "When it was made."),
    time("archived_at", "When it was put away; NULL: in use.", null=True),
    text("repository", "Where issues about it are filed: https://github.com/OWNER/NAME; NULL: not known.", null=True),
    sa.UniqueConstraint("tenant_id", "name"),
    comment="Runs that belong together; it holds their settings and their findings' states.",
)

snippet: Final = sa.Table(
    "snippet",
    METADATA,
    identity(),
    public_id("snp"),
    refers("tenant_id", "tenant", "Whose it is."),
    blob(
        "sha256", "Over entry, paths and contents, and whether it is named; the same program is stored once per tenant."
    ),
    text("entry", "Path of the file that is run, or the module that `python -m` would run."),
    i2("files", "How many files."),
    i8("size_bytes", "Bytes of all files."),
    time("created_at", "When it first came."),
    time("kept_until", "Then it is asked whether a run still keeps its files; NULL: they are gone.", null=True),
    flag(
        "named", "Whoever sent it named its file; else it came as `source` alone, and its path is ours.", default=True
    ),
    sa.UniqueConstraint("tenant_id", "sha256"),
    comment="A program as submitted: one file or several with an entry. Never changed.",
)

_kept: Final = sa.text("kept_until is not null")
sa.Index("snippet_kept", snippet.c.kept_until, postgresql_where=_kept, sqlite_where=_kept)

snippet_file: Final = sa.Table(
    "snippet_file",
    METADATA,
    refers("snippet_id", "snippet", "Which snippet."),
    i2("n", "Its place among the snippet's files, from 0, in order of the path."),
    text("path", "Relative POSIX path."),
    blob("sha256", "Of the bytes."),
    flag("is_text", "It is UTF-8 text; else a file that the program reads."),
    blob("body", "The bytes."),
    sa.PrimaryKeyConstraint("snippet_id", "n"),
    sa.UniqueConstraint("snippet_id", "path"),
    comment="One file of a snippet.",
)
