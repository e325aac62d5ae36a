"""Projects: runs that belong together, with the settings that judge them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from store.database.ids import new_id
from store.database.session import Transaction
from store.tables import Now, project

_NAMED: Final = (
    project.c.public_id == sa.bindparam("its_id"),
    project.c.tenant_id == sa.bindparam("its_tenant"),
)
_FIRST: Final = (
    sa.select(project).where(project.c.tenant_id == sa.bindparam("its_tenant")).order_by(project.c.id).limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One project.

    Attributes:
        settings: Those of judging in `[tool.backprobe]` that hold for its runs; empty: all rules, as they stand.
        keep_days: Days that a record is kept after its run's end; None: as the tenant says.
        repository: Where issues about it are filed, https://github.com/OWNER/NAME; None: not known.
        archived_at: Put away: it takes no more runs; None: in use.
        number: Not shown.
    """

    id: str
    name: str
    settings: Mapping[str, Any]
    keep_days: int | None
    repository: str | None
    created_at: str
    archived_at: str | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """Some projects, oldest first; `next` is the `after` of the next page or None."""

    items: tuple[Project, ...]
    next: int | None


class NameTaken(Exception):
    """The tenant has another project with this name; choose a different one."""


def create(
    transaction: Transaction,
    name: str,
    settings: Mapping[str, Any],
    keep_days: int | None,
    repository: str | None = None,
    *,
    tenant_id: int = 1,
) -> Project:
    """Create a project.

    Raises:
        NameTaken: the transaction can only be rolled back.
    """
    values = {"public_id": new_id("prj"), "tenant_id": tenant_id, "name": name, "settings": dict(settings)}
    more = {"keep_days": keep_days, "repository": repository, "created_at": Now()}
    insert = sa.insert(project).values(values | more)
    try:
        row = transaction.execute(insert.returning(project)).one()
    except IntegrityError:
        raise NameTaken(name) from None
    return _project(row)


def find(transaction: Transaction, name_or_id: str, *, tenant_id: int = 1) -> Project | None:
    """Return the project of this id, else the one of this name; None: the tenant has neither."""
    named = sa.select(project).where(project.c.tenant_id == tenant_id, project.c.name == name_or_id)
    row = transaction.execute(named).one_or_none()
    return get(transaction, name_or_id, tenant_id=tenant_id) or (None if row is None else _project(row))


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1, to_change: bool = False) -> Project | None:
    """One project; None: the tenant has none with this id.

    Args:
        to_change: Nobody else changes it before this transaction ends.
    """
    query = sa.select(project).where(*_NAMED)
    if to_change:
        query = query.with_for_update()
    row = transaction.execute(query, {"its_id": public_id, "its_tenant": tenant_id}).first()
    return None if row is None else _project(row)


def first(transaction: Transaction, tenant_id: int) -> Project:
    """Load the tenant's oldest project."""
    return _project(transaction.execute(_FIRST, {"its_tenant": tenant_id}).one())


def load_by_number(transaction: Transaction, number: int) -> Project:
    """Load the project with this number."""
    return _project(transaction.execute(sa.select(project).where(project.c.id == number)).one())


def names(transaction: Transaction, public_ids: Collection[str], *, tenant_id: int = 1) -> dict[str, str]:
    """Return the names of these projects of a tenant by their ids."""
    which = (project.c.tenant_id == tenant_id, project.c.public_id.in_(sorted(public_ids)))
    return {row.public_id: row.name for row in transaction.execute(sa.select(project).where(*which))}


def page(
    transaction: Transaction, *, tenant_id: int = 1, only: int | None = None, after: int | None = None, limit: int = 100
) -> ProjectPage:
    """List the projects of a tenant, oldest first. `only` is the number of the one project that the caller may see."""
    query = sa.select(project).where(project.c.tenant_id == tenant_id)
    if only is not None:
        query = query.where(project.c.id == only)
    if after is not None:
        query = query.where(project.c.id > after)
    rows = transaction.execute(query.order_by(project.c.id).limit(limit + 1)).all()
    items = tuple(_project(row) for row in rows[:limit])
    return ProjectPage(items=items, next=items[-1].number if len(rows) > limit else None)


def change(transaction: Transaction, found: Project, given: Mapping[str, Any]) -> None:
    """Change name, settings, keep_days, repository, or whether it is archived (`archived`), as far as given.

    Raises:
        NameTaken: the transaction can only be rolled back.
    """
    values = {name: given[name] for name in ("name", "settings", "keep_days", "repository") if name in given}
    if "archived" in given and given["archived"] != (found.archived_at is not None):
        values["archived_at"] = Now() if given["archived"] else None
    if not values:
        return
    try:
        transaction.execute(sa.update(project).where(project.c.id == found.number).values(values))
    except IntegrityError:
        raise NameTaken(given.get("name", "")) from None


def _project(row: Any) -> Project:
    return Project(
        id=row.public_id,
        name=row.name,
        settings=row.settings,
        keep_days=row.keep_days,
        repository=row.repository,
        created_at=row.created_at,
        archived_at=row.archived_at,
        number=row.id,
    )
