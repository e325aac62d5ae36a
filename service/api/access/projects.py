"""Projects: their list, and for an admin making and changing them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from pydantic import Field

from service.api.records.record import NoQuery
from service.auth.caller import caller, demand, demand_tenant
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import RulesAsked, Short
from service.schemas.responses.operation import ProjectList, ProjectTold
from service.web.body import Int, Strict, body, query
from service.web.idempotency import effect, storing
from service.web.parameters import Page
from service.web.reply import SAME, check_match, conditional, json_reply, page_reply, read_cursor
from store.access import projects

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Response

    from store.access.projects import Project
    from store.database.session import Transaction

blueprint = Operations("projects", __name__, tag="Operation")

Repository = Annotated[
    str, Field(max_length=200, pattern=r"^https://[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?/[A-Za-z0-9-]+/[A-Za-z0-9._-]+$")
]
Days = Annotated[Int, Field(ge=1, le=3653)]
_NAME: Final = "For people; no other project of the tenant has it."
_SETTINGS: Final = "Its runs are judged by these unless they bring `rules` of their own."
_KEEP: Final = "Days that a record is kept after its run's end; `null`: as the tenant says."
_REPOSITORY: Final = (
    "A repository on GitHub or GitHub Enterprise, `https://github.com/OWNER/NAME`: pages of findings link to a new "
    "issue there; `null`: they do not."
)


class ProjectAsked(Strict):
    """A project to be made."""

    name: Annotated[Short, Field(min_length=1)] = Field(description=_NAME)
    settings: RulesAsked = Field(default_factory=RulesAsked, description=_SETTINGS)
    keep_days: Days | None = Field(default=None, description=_KEEP)
    repository: Repository | None = Field(default=None, description=_REPOSITORY)


class ProjectChanged(Strict):
    """What is to change of a project; what is not given stays (`model_fields_set`; the defaults mean nothing)."""

    name: Annotated[Short, Field(min_length=1)] = Field(default_factory=str, description=_NAME)
    settings: RulesAsked = Field(default_factory=RulesAsked, description=f"Replaces all settings. {_SETTINGS}")
    keep_days: Days | None = Field(default=None, description=_KEEP)
    repository: Repository | None = Field(default=None, description=_REPOSITORY)
    archived: bool = Field(default_factory=bool, description="Put away: it takes no more runs.")


@blueprint.get("/v1/projects")
@query(Page)
@answers({200: Answer(text="A page of projects, oldest first.", model=ProjectList, headers=("Link",))})
def list_projects(query: Page) -> Response:
    """The projects of the tenant; a key of one project sees that one."""
    page = projects_page("projects", query)
    return page_reply(
        "projects",
        query,
        [_project_to_json(project) for project in page.items],
        None if page.next is None else [page.next],
    )


def projects_page(listing: str, query: Page) -> projects.ProjectPage:
    """Return some projects that the caller sees."""
    asked, after = caller(), read_cursor(listing, query)
    with context().database.read() as transaction:
        return projects.page(
            transaction,
            tenant_id=asked.tenant_id,
            only=asked.project_id,
            after=after[0] if after else None,
            limit=query.limit,
        )


@blueprint.get("/v1/projects/<project>")
@query(NoQuery)
@answers(
    {200: Answer(text="The project.", model=ProjectTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",)
)
def get_project(project: str) -> Response:
    """One project by its id."""
    return conditional(_reply(load_project(project)))


def load_project(public_id: str) -> Project:
    """Return a project that the caller sees.

    Raises:
        Problem: `not-found`.
    """
    with context().database.read() as transaction:
        return _project_of(transaction, public_id)


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
    found, headers = make_project(body)
    return _reply(found, 201, {"Location": f"/v1/projects/{found.id}", **headers})


def make_project(asked: ProjectAsked) -> tuple[Project, dict[str, str]]:
    """Make a project of the caller's tenant; the project, headers of the answer."""
    demand("admin")
    demand_tenant()
    with storing() as write:
        if write.known is not None:
            found = _project_of(write.transaction, (write.known.body or b"").decode())
        else:
            settings = asked.settings.model_dump(exclude_unset=True)
            try:
                found = projects.create(
                    write.transaction,
                    asked.name,
                    settings,
                    asked.keep_days,
                    asked.repository,
                    tenant_id=caller().tenant_id,
                )
            except projects.NameTaken:
                raise _name_taken_problem() from None
            write.done("project.create", found.id)
    return found, write.headers


@blueprint.patch("/v1/projects/<project>")
@body(ProjectChanged)
@answers(
    {200: Answer(text="The project, changed.", model=ProjectTold, headers=("ETag",))},
    problems=("if-match-needed", "stale", *STORING),
    headers=("If-Match",),
    scope="admin",
)
def change_project(project: str, body: ProjectChanged) -> Response:
    """Change a project's name, settings and time, or put it away. Needs `If-Match`; queued runs do not change."""
    return _reply(save_project(project, body, lambda found: check_match(f"project {found.id}", project_etag(found))))


def save_project(public_id: str, changed: ProjectChanged, check: Callable[[Project], None]) -> Project:
    """Change a project of the caller's tenant; `check` raises if its sender has seen another state of it."""
    demand("admin")
    demand_tenant()
    given = {name: getattr(changed, name) for name in changed.model_fields_set}
    if "settings" in given:
        given["settings"] = changed.settings.model_dump(exclude_unset=True)
    with storing() if "settings" in given else effect() as write:
        found = _project_of(write.transaction, public_id, to_change=True)
        check(found)
        try:
            projects.change(write.transaction, found, given)
        except projects.NameTaken:
            raise _name_taken_problem() from None
        write.done("project.change", found.id, detail={"fields": sorted(given)})
        return _project_of(write.transaction, public_id)


def _name_taken_problem() -> Problem:
    detail = "The tenant has another project with this name."
    return Problem("invalid-request", detail, places=(Place(pointer="#/name", code="name-taken", detail=detail),))


def _project_of(transaction: Transaction, public_id: str, *, to_change: bool = False) -> Project:
    """Load the project of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    asked = caller()
    found = projects.get(transaction, public_id[:50], tenant_id=asked.tenant_id, to_change=to_change)
    if found is None or asked.project not in {None, found.id}:
        raise Problem("not-found", f"There is no project {public_id[:40]}.")
    return found


def place_of_run(transaction: Transaction, public_id: str) -> Project:
    """Load the project that a run is to be put into.

    Raises:
        Problem: `not-found`; `invalid-request`: it has been put away.
    """
    found = _project_of(transaction, public_id)
    if found.archived_at is not None:
        detail = f"The project {found.id} has been put away."
        raise Problem("invalid-request", detail, places=(Place(pointer="#/project", code="archived", detail=detail),))
    return found


def place_of_caller(transaction: Transaction, asked: str | None) -> Project:
    """Load the project that was asked for; else the only one of the caller, or the tenant's first.

    Raises:
        Problem: as `place_of_run`.
    """
    if asked is not None or caller().project is not None:
        return place_of_run(transaction, asked or str(caller().project))
    return projects.first(transaction, caller().tenant_id)


def _reply(found: Project, status: int = 200, more: dict[str, str] | None = None) -> Response:
    return json_reply(
        _project_to_json(found), status, {"ETag": project_etag(found), "Cache-Control": "no-cache", **(more or {})}
    )


def project_etag(found: Project) -> str:
    """Return what tells this state of a project from another, quotes included."""
    return f'"{hashlib.sha256(msgspec.json.encode(_project_to_json(found))).hexdigest()[:16]}"'


def _project_to_json(found: Project) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "settings": dict(found.settings),
        "keep_days": found.keep_days,
        "repository": found.repository,
        "created_at": found.created_at,
        "archived_at": found.archived_at,
        "links": {
            "self": f"/v1/projects/{found.id}",
            "runs": f"/v1/runs?project={found.id}",
            "trends": f"/v1/projects/{found.id}/trends",
        },
    }
