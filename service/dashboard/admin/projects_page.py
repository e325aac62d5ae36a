"""The pages `/admin/projects` and `/admin/projects/PROJECT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flask import redirect, request

from service.api.access.projects import (
    ProjectAsked,
    ProjectChanged,
    load_project,
    make_project,
    project_etag,
    projects_page,
    save_project,
)
from service.auth.caller import caller, demand, demand_tenant
from service.dashboard.admin.forms import check_form_etag, check_typed, etag_to_show, read_form, render_admin, to_number
from service.dashboard.pages import blueprint
from service.problems.errors import Problem, keep_for_form
from service.web.body import query
from service.web.parameters import Page
from service.web.reply import next_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Response as Redirect

    from store.access.projects import Project

_LISTING: Final = "page projects"
_FIELDS: Final = ("name", "keep_days", "repository")


@blueprint.get("/admin/projects")
@query(Page)
def admin_projects(query: Page) -> str:
    """List the projects, with a form that makes one."""
    return _render_projects(query, dict.fromkeys(_FIELDS, ""))


@blueprint.post("/admin/projects")
def make_project_of_form() -> Redirect | tuple[str, int]:
    """Make a project."""
    typed = _typed_fields()
    try:
        make_project(read_form(ProjectAsked, _to_json(typed)))
    except Problem as problem:
        return _render_projects(Page(), typed, keep_for_form(problem)), 422
    return redirect("/admin/projects", 303)


def _typed_fields() -> dict[str, str]:
    return {name: request.form.get(name, "").strip() for name in _FIELDS}


def _to_json(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields as the API takes them."""
    repository = typed["repository"].rstrip("/") or None
    return {**typed, "keep_days": to_number(typed["keep_days"]), "repository": repository}


def _render_projects(query: Page, typed: Mapping[str, str], fault: Problem | None = None) -> str:
    page = projects_page(_LISTING, query)
    return render_admin(
        "projects.html",
        projects=page.items,
        more=next_address(_LISTING, query, None if page.next is None else [page.next]),
        later=query.cursor is not None,
        may_write=_may_write(),
        typed=typed,
        fault=fault,
    )


def _may_write() -> bool:
    return caller().may("admin") and caller().project is None


@blueprint.get("/admin/projects/<project>")
def admin_project(project: str) -> str:
    """Show one project, with the forms that change and archive it."""
    return _render_project(load_project(project))


def _render_project(
    found: Project,
    typed: Mapping[str, str] | None = None,
    fault: Problem | None = None,
    fault_of_archive: Problem | None = None,
) -> str:
    keep_days = "" if found.keep_days is None else str(found.keep_days)
    now = {"name": found.name, "keep_days": keep_days, "repository": found.repository or ""}
    return render_admin(
        "project.html",
        project=found,
        etag=project_etag(found),
        etag_of_change=etag_to_show(project_etag(found), fault),
        may_write=_may_write(),
        typed=typed or now,
        fault=fault,
        fault_of_archive=fault_of_archive,
    )


def _check_unchanged(found: Project) -> None:
    check_form_etag(f"project {found.id}", project_etag(found))


@blueprint.post("/admin/projects/<project>")
def change_project_of_form(project: str) -> Redirect | tuple[str, int]:
    """Change a project's name, how long its records are kept, and where its issues are filed."""
    typed = _typed_fields()
    try:
        changed = read_form(ProjectChanged, _to_json(typed))
        save_project(project, changed, _check_unchanged)
    except Problem as problem:
        return _render_project(load_project(project), typed, keep_for_form(problem)), 422
    return redirect(f"/admin/projects/{project}", 303)


@blueprint.post("/admin/projects/<project>/archive")
def archive_project_of_form(project: str) -> Redirect | tuple[str, int]:
    """Archive the project whose name was typed: it takes no more runs."""
    demand("admin")
    demand_tenant()
    found = load_project(project)
    try:
        check_typed(found.name, found.id)
        save_project(project, ProjectChanged.model_validate({"archived": True}), _check_unchanged)
    except Problem as problem:
        return _render_project(found, fault_of_archive=keep_for_form(problem)), 422
    return redirect(f"/admin/projects/{project}", 303)


@blueprint.post("/admin/projects/<project>/restore")
def restore_project_of_form(project: str) -> Redirect:
    """Let an archived project take runs again."""
    save_project(project, ProjectChanged.model_validate({"archived": False}), _check_unchanged)
    return redirect(f"/admin/projects/{project}", 303)
