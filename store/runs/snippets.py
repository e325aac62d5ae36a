"""Programs as they were sent: stored once per tenant and content, read back, never changed.

A program is kept as long as a run of it is, and one that nobody ran for a week after it came. `kept_until` says when it
is next asked whether that is so; then its files go, and with them its row if no run was ever of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from backprobe.snippet_digest import snippet_digest
from store.database.ids import new_id
from store.database.session import Database, Transaction
from store.runs.transitions import in_status
from store.tables import Now, run, snippet, snippet_file

UNUSED_SECONDS: Final = 7 * 86400.0
"""How long a program that nobody runs is kept after it came, or came again."""

ASK_SECONDS: Final = 86400.0
"""After which it is asked again whether a run still keeps a program."""

_KNOWN: Final = (
    sa.select(snippet.c.id, snippet.c.public_id)
    .where(snippet.c.tenant_id == sa.bindparam("tenant_id"), snippet.c.sha256 == sa.bindparam("sha256"))
    .with_for_update(read=True, key_share=True)  # `owner_changes.forget` waits, and then sees the run that is coming
)
_HOLD: Final = sa.select(snippet.c.id).where(snippet.c.id == sa.bindparam("which")).with_for_update()
_RUN_OF: Final = sa.select(run.c.id).where(run.c.snippet_id == sa.bindparam("which")).limit(1)
_KEEPING: Final = _RUN_OF.where(
    sa.or_(
        in_status("queued"),
        in_status("running"),
        run.c.record_state.in_(("partial", "whole")),
        sa.and_(run.c.record_state == "none", run.c.kept_until > Now()),
    )
)
"""Runs that keep the program; one without a record keeps it for as long as it would have kept that."""

_DUE: Final = sa.select(snippet.c.id).where(snippet.c.kept_until <= Now()).order_by(snippet.c.kept_until)
_NEVER_RUN: Final = (
    sa.select(snippet.c.id)
    .where(snippet.c.kept_until.is_not(None), snippet.c.tenant_id.in_(sa.bindparam("tenants", expanding=True)))
    .where(~sa.exists().where(run.c.snippet_id == snippet.c.id))
    .order_by(snippet.c.kept_until)
    .limit(1)
)
_FILES_OF: Final = sa.select(snippet_file.c.n).where(snippet_file.c.snippet_id == sa.bindparam("snippet_id")).limit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnippet:
    """A snippet that is stored; `fresh`: it was not before. number: of its row, not shown."""

    id: str
    fresh: bool
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetFile:
    """One file of a snippet. sha256: of its bytes, in hex."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A snippet; `files` in order of their paths, empty if its source is not kept any more.

    Attributes:
        named: Whoever sent it named its file.
    """

    id: str
    entry: str
    named: bool
    bytes: int
    created_at: str
    files: tuple[SnippetFile, ...]
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose snippets: a tenant's; with `project_id`, those that runs of this project are of."""

    tenant_id: int = 1
    project_id: int | None = None

    def where(self) -> tuple[sa.ColumnElement[bool], ...]:
        """As conditions on `snippet`."""
        mine = snippet.c.tenant_id == self.tenant_id
        if self.project_id is None:
            return (mine,)
        return (mine, sa.exists().where(run.c.snippet_id == snippet.c.id, run.c.project_id == self.project_id))


def find_entry_file(files: Collection[str], entry: str) -> str | None:
    """Return the path of the file that an entry starts: its own, or its module's; None if there is no such file."""
    if entry in files:
        return entry
    if not all(part.isidentifier() for part in entry.split(".")):
        return None
    module = entry.replace(".", "/")
    return next((path for path in (f"{module}/__main__.py", f"{module}.py") if path in files), None)


def get(transaction: Transaction, scope: Scope, public_id: str) -> Snippet | None:
    """One snippet with its files, without their text; None: no such one of this scope."""
    row = transaction.execute(sa.select(snippet).where(snippet.c.public_id == public_id, *scope.where())).first()
    if row is None:
        return None
    f = snippet_file
    size = sa.func.length(f.c.body).label("size")
    files = sa.select(f.c.path, f.c.sha256, size).where(f.c.snippet_id == row.id).order_by(f.c.n)
    return Snippet(
        id=row.public_id,
        entry=row.entry,
        named=row.named,
        bytes=row.size_bytes,
        created_at=row.created_at,
        files=tuple(
            SnippetFile(path=file_row.path, sha256=bytes(file_row.sha256).hex(), bytes=file_row.size)
            for file_row in transaction.execute(files)
        ),
        number=row.id,
    )


def body_of(transaction: Transaction, found: Snippet, path: str) -> bytes | None:
    """Load the bytes of one file; None if there is none at this path."""
    f = snippet_file
    return transaction.execute(sa.select(f.c.body).where(f.c.snippet_id == found.number, f.c.path == path)).scalar()


def program_of(transaction: Transaction, found: Snippet) -> Mapping[str, str]:
    """Load the text of each file by path; empty if the source is deleted."""
    f = snippet_file
    rows = transaction.execute(sa.select(f.c.path, f.c.body).where(f.c.snippet_id == found.number).order_by(f.c.n))
    return {row.path: row.body.decode() for row in rows}


def keep(
    transaction: Transaction, files: Mapping[str, str], entry: str, *, named: bool = True, tenant_id: int = 1
) -> StoredSnippet:
    """Find the snippet with exactly this content, or store it.

    Args:
        transaction: To write by.
        files: Text by path.
        entry: One of them, or a module among them.
        named: Whoever sent it named its file.
        tenant_id: Whose.
    """
    bodies = {path: text.encode() for path, text in sorted(files.items())}
    which = {"tenant_id": tenant_id, "sha256": snippet_digest(entry, bodies, named=named)}
    known = transaction.execute(_KNOWN, which).first()
    if known is not None:
        if transaction.execute(_FILES_OF, {"snippet_id": known.id}).first() is None:  # its runs were all forgotten
            _keep_files(transaction, known.id, bodies)
            asked_again(transaction, known.id)
        return StoredSnippet(id=known.public_id, fresh=False, number=known.id)
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    public_id = new_id("snp")
    facts = {
        "public_id": public_id,
        "entry": entry,
        "named": named,
        "files": len(bodies),
        "size_bytes": sum(map(len, bodies.values())),
        "created_at": Now(),
        "kept_until": Now(UNUSED_SECONDS),
    }
    added = transaction.execute(
        insert(snippet).values(which | facts).on_conflict_do_nothing().returning(snippet.c.id)
    ).scalar()
    if added is None:  # another transaction stored the same one since we looked, and has committed
        there = transaction.execute(_KNOWN, which).one()
        return StoredSnippet(id=there.public_id, fresh=False, number=there.id)
    _keep_files(transaction, added, bodies)
    return StoredSnippet(id=public_id, fresh=True, number=added)


def asked_again(transaction: Transaction, number: int) -> None:
    """Keep a program that came again without a run as long as one that came now."""
    this = sa.update(snippet).where(snippet.c.id == number)
    transaction.execute(this.values(kept_until=Now(UNUSED_SECONDS)))


def expire_unused(database: Database, *, limit: int = 100) -> int:
    """Delete the programs that are due and that no run keeps; how many."""
    with database.read() as reading:
        due = reading.execute(_DUE.limit(limit)).scalars().all()
    return sum(_let_go(database, number) for number in due)


def drop_unused(database: Database, tenants: Collection[int]) -> bool:
    """Delete the oldest program of these tenants that nobody ever ran. False: there is none."""
    with database.read() as reading:
        number = reading.execute(_NEVER_RUN, {"tenants": sorted(tenants)}).scalar()
    return number is not None and _let_go(database, number, unless=_RUN_OF)


def _let_go(database: Database, number: int, *, unless: sa.Select[tuple[int]] = _KEEPING) -> bool:
    """Delete a program's files, and its row if no run is of it. False: a run keeps it."""
    which = {"which": number}
    this = snippet.c.id == number
    with database.begin() as transaction:
        transaction.execute(_HOLD, which)  # whoever submits it waits, and then finds that its files have gone
        if transaction.execute(unless, which).first() is not None:
            transaction.execute(sa.update(snippet).where(this).values(kept_until=Now(ASK_SECONDS)))
            return False
        transaction.execute(sa.delete(snippet_file).where(snippet_file.c.snippet_id == number))
        if transaction.execute(_RUN_OF, which).first() is None:
            transaction.execute(sa.delete(snippet).where(this))
        else:
            transaction.execute(sa.update(snippet).where(this).values(kept_until=None))
    return True


def _keep_files(transaction: Transaction, number: int, bodies: Mapping[str, bytes]) -> None:
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    rows = [
        {
            "snippet_id": number,
            "n": n,
            "path": path,
            "sha256": hashlib.sha256(body).digest(),
            "is_text": True,
            "body": body,
        }
        for n, (path, body) in enumerate(bodies.items())
    ]
    transaction.execute(insert(snippet_file).on_conflict_do_nothing(), rows)
