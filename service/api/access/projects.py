"""Projects: their list, and for an admin making and changing them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from pydantic import Field

from service.api.records.record import NoQuery
from service.auth.caller import caller, demand_tenant
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import RulesAsked, Short
from service.schemas.responses.operation import ProjectList, ProjectTold
from service.web.body import Int, Strict, body, query
from service.web.idempotency import effect, storing
from service.web.parameters import Page
from service.web.reply import SAME, after_of, check_match, conditional, json_reply, page_reply
from store.access import projects

if TYPE_CHECKING:
    from flask import Response

    from store.access.projects import Project
    from store.database.session import Transaction

blueprint = Operations("projects", __name__, tag="Operation")

Days = Annotated[Int, Field(ge=1, le=3653)]
_NAME: Final = "For people; no other project of the tenant has it."
_SETTINGS: Final = "Its runs are judged by these unless they bring `rules` of their own."
_KEEP: Final = "Days that a record is kept after its run's end; `null`: as the tenant says."


class ProjectAsked(Strict):
    """A project to be made."""

    name: Annotated[Short, Field(min_length=1)] = Field(description=_NAME)
    settings: RulesAsked = Field(default_factory=RulesAsked, description=_SETTINGS)
    keep_days: Days | None = Field(default=None, description=_KEEP)


class ProjectChanged(Strict):
    """What is to change of a project; what is not given stays (`model_fields_set`; the defaults mean nothing)."""

    name: Annotated[Short, Field(min_length=1)] = Field(default_factory=str, description=_NAME)
    settings: RulesAsked = Field(default_factory=RulesAsked, description=f"All of them anew. {_SETTINGS}")
    keep_days: Days | None = Field(default=None, description=_KEEP)
    archived: bool = Field(default_factory=bool, description="Put away: it takes no more runs.")


@blueprint.get("/v1/projects")
@query(Page)
@answers({200: Answer(text="A page of projects, oldest first.", model=ProjectList, headers=("Link",))})
def list_projects(query: Page) -> Response:
    """The projects of the tenant; a key of one project sees that one."""
    asked, after = caller(), after_of("projects", query)
    with context().database.read() as transaction:
        page = projects.page(
            transaction,
            tenant_id=asked.tenant_id,
            only=asked.project_id,
            after=after[0] if after else None,
            limit=query.limit,
        )
    return page_reply("projects", query, [_told(one) for one in page.items], None if page.next is None else [page.next])


@blueprint.get("/v1/projects/<project>")
@query(NoQuery)
@answers(
    {200: Answer(text="The project.", model=ProjectTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",)
)
def get_project(project: str) -> Response:
    """One project by its id."""
    with context().database.read() as transaction:
        found = _project_of(transaction, project)
    return conditional(_reply(found))


@blueprint.post("/v1/projects")
@body(ProjectAsked)
@answers(
    {201: Answer(text="The project.", model=ProjectTold, headers=("Location", "ETag"))},
    problems=(*STORING, *ONCE),
    headers=("Idempotency-Key",),
    scope="admin",
)
def create_project(body: ProjectAsked) -> Response:
    """Make a project. Runs come into it by `project`, or by a key that is limited to it."""
    demand_tenant()
    with storing() as write:
        if write.known is not None:
            found = _project_of(write.transaction, (write.known.body or b"").decode())
        else:
            settings = body.settings.model_dump(exclude_unset=True)
            try:
                found = projects.create(
                    write.transaction, body.name, settings, body.keep_days, tenant_id=caller().tenant_id
                )
            except projects.NameTaken:
                raise _taken() from None
            write.done("project.create", found.id)
    return _reply(found, 201, {"Location": f"/v1/projects/{found.id}", **write.headers})


@blueprint.patch("/v1/projects/<project>")
@body(ProjectChanged)
@answers(
    {200: Answer(text="The project, changed.", model=ProjectTold, headers=("ETag",))},
    problems=("if-match-needed", "stale", *STORING),
    headers=("If-Match",),
    scope="admin",
)
def change_project(project: str, body: ProjectChanged) -> Response:
    """Change a project's name, settings and time, or put it away. Needs `If-Match`; queued runs stay as asked."""
    demand_tenant()
    given = {name: getattr(body, name) for name in body.model_fields_set}
    if "settings" in given:
        given["settings"] = body.settings.model_dump(exclude_unset=True)
    with storing() if "settings" in given else effect() as write:
        found = _project_of(write.transaction, project, to_change=True)
        check_match(f"project {found.id}", _etag(found))
        try:
            projects.change(write.transaction, found, given)
        except projects.NameTaken:
            raise _taken() from None
        write.done("project.change", found.id, detail={"fields": sorted(given)})
        found = _project_of(write.transaction, project)
    return _reply(found)


def _taken() -> Problem:
    detail = "The tenant has another project with this name."
    return Problem("invalid-request", detail, places=(Place(pointer="#/name", code="name-taken", detail=detail),))


def _project_of(transaction: Transaction, public_id: str, *, to_change: bool = False) -> Project:
    """The project of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    asked = caller()
    found = projects.get(transaction, public_id[:50], tenant_id=asked.tenant_id, to_change=to_change)
    if found is None or asked.project not in {None, found.id}:
        raise Problem("not-found", f"There is no project {public_id[:40]}.")
    return found


def place_of_run(transaction: Transaction, public_id: str) -> Project:
    """The project that a run is to come into.

    Raises:
        Problem: `not-found`; `invalid-request`: it has been put away.
    """
    found = _project_of(transaction, public_id)
    if found.archived_at is not None:
        detail = f"The project {found.id} has been put away."
        raise Problem("invalid-request", detail, places=(Place(pointer="#/project", code="archived", detail=detail),))
    return found


def place_of_caller(transaction: Transaction, asked: str | None) -> Project:
    """The project that was asked for; else the only one of the caller, or the tenant's first.

    Raises:
        Problem: as `place_of_run`.
    """
    if asked is not None or caller().project is not None:
        return place_of_run(transaction, asked or str(caller().project))
    return projects.first(transaction, caller().tenant_id)


def _reply(found: Project, status: int = 200, more: dict[str, str] | None = None) -> Response:
    return json_reply(_told(found), status, {"ETag": _etag(found), "Cache-Control": "no-cache", **(more or {})})


def _etag(found: Project) -> str:
    return f'"{hashlib.sha256(msgspec.json.encode(_told(found))).hexdigest()[:16]}"'


def _told(found: Project) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "settings": dict(found.settings),
        "keep_days": found.keep_days,
        "created_at": found.created_at,
        "archived_at": found.archived_at,
        "links": {"self": f"/v1/projects/{found.id}", "runs": f"/v1/runs?project={found.id}"},
    }
