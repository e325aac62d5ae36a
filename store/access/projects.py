"""Projects: runs that belong together, with the settings that judge them."""

from __future__ import annotations

from collections.abc import Mapping
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
        archived_at: Put away: it takes no more runs; None: in use.
        number: Not shown.
    """

    id: str
    name: str
    settings: Mapping[str, Any]
    keep_days: int | None
    created_at: str
    archived_at: str | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """Some projects, oldest first; `next` is the `after` of the next page or None."""

    items: tuple[Project, ...]
    next: int | None


class NameTaken(Exception):
    """The tenant has another project with this name; choose one of its own."""


def create(
    transaction: Transaction, name: str, settings: Mapping[str, Any], keep_days: int | None, *, tenant_id: int = 1
) -> Project:
    """A new project.

    Raises:
        NameTaken: the transaction can only be rolled back.
    """
    values = {"public_id": new_id("prj"), "tenant_id": tenant_id, "name": name, "settings": dict(settings)}
    insert = sa.insert(project).values(values | {"keep_days": keep_days, "created_at": Now()})
    try:
        row = transaction.execute(insert.returning(project)).one()
    except IntegrityError:
        raise NameTaken(name) from None
    return _project(row)


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
    """The tenant's oldest project."""
    return _project(transaction.execute(_FIRST, {"its_tenant": tenant_id}).one())


def numbered(transaction: Transaction, number: int) -> Project:
    """The project with this number."""
    return _project(transaction.execute(sa.select(project).where(project.c.id == number)).one())


def page(
    transaction: Transaction, *, tenant_id: int = 1, only: int | None = None, after: int | None = None, limit: int = 100
) -> ProjectPage:
    """The projects of a tenant, oldest first; `only`: the number of the only one to be seen."""
    query = sa.select(project).where(project.c.tenant_id == tenant_id)
    if only is not None:
        query = query.where(project.c.id == only)
    if after is not None:
        query = query.where(project.c.id > after)
    rows = transaction.execute(query.order_by(project.c.id).limit(limit + 1)).all()
    items = tuple(_project(row) for row in rows[:limit])
    return ProjectPage(items=items, next=items[-1].number if len(rows) > limit else None)


def change(transaction: Transaction, found: Project, given: Mapping[str, Any]) -> None:
    """Change name, settings, keep_days, or whether it is archived (`archived`), as far as given.

    Raises:
        NameTaken: the transaction can only be rolled back.
    """
    values = {name: given[name] for name in ("name", "settings", "keep_days") if name in given}
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
        created_at=row.created_at,
        archived_at=row.archived_at,
        number=row.id,
    )
