"""The pages: runs, one run, a rule's manual, what a problem's code means. Server-rendered; none needs JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from flask import Blueprint, redirect, render_template, request
from jinja2 import StrictUndefined
from pydantic import Field

from backprobe import __version__
from backprobe.rules.framework.manual import UnknownRule, every_rule, manual
from service.api.runs.run_json import run_of
from service.api.runs.runs import RunsQuery, runs_page
from service.auth.caller import caller
from service.context import context
from service.dashboard import words
from service.dashboard.rules_page import RulesQuery, families_shown
from service.dashboard.run_page import run_page
from service.dashboard.signs import Sign, sign_of
from service.problems.catalogue import KINDS
from service.problems.errors import Problem
from service.process.readiness import standing
from service.web.body import Strict, query
from service.web.parameters import Cursor, Whole

if TYPE_CHECKING:
    from flask import Response
    from flask.blueprints import BlueprintSetupState
    from werkzeug.wrappers import Response as Redirect

    from service.process.readiness import Standing
    from store.database.session import Transaction
    from store.runs.model import Queue

blueprint = Blueprint("pages", __name__)


class RunPageQuery(Strict):
    """Which part of a run's page."""

    file: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    first_line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] = Field(default=1, alias="from")
    tensors: Cursor | None = None


@blueprint.record_once
def _words(state: BlueprintSetupState) -> None:
    words.register(state.app.jinja_env)
    state.app.jinja_env.undefined = StrictUndefined
    state.app.jinja_env.trim_blocks = state.app.jinja_env.lstrip_blocks = True
    state.app.jinja_env.globals.update(version=__version__, anchor=_anchor)


@blueprint.after_request
def _uncached(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/")
def home() -> Redirect:
    """The runs."""
    return redirect("/runs")


@blueprint.get("/runs")
@query(RunsQuery)
def runs_list(query: RunsQuery) -> str:
    """The runs, newest first."""
    page, more = runs_page("page runs", query)
    with context().database.read() as transaction:
        now = _standing(transaction, "cpu")
    return render_template(
        "runs.html",
        runs=page,
        now=now,
        chosen=query.status or [],
        more=more,
        later=query.cursor is not None,
        origin=request.host_url.rstrip("/"),
        key_line="" if context().settings.api_key is None else '-H "Authorization: Bearer $BACKPROBE_API_KEY" ',
    )


def _standing(transaction: Transaction, queue: Queue) -> Standing:
    """What runs get now; the operator is told why."""
    found, asked = standing(context(), transaction, queue), caller()
    return found if asked.operates and asked.may("admin") else found.without_reasons()


@blueprint.get("/runs/<run>")
@query(RunPageQuery)
def run(run: str, query: RunPageQuery) -> str:
    """One run."""
    shared = context()
    with shared.database.read() as transaction:
        row = run_of(transaction, run)
        listing = f"{row.id} page tensors"
        after = shared.cursors.read(listing, {}, query.tensors)[0] if query.tensors else None
        waits_for = _standing(transaction, row.queue) if row.status == "queued" else None
        page = run_page(transaction, row, file=query.file, first=query.first_line, after=after, waits_for=waits_for)
    if query.file is not None and page.source is None and row.snippet is not None:
        raise Problem("not-found", f"Run {row.id} has no file {query.file}.")
    more = None if page.next_tensors is None else shared.cursors.sign(listing, {}, [page.next_tensors])
    facts: dict[str, Any] = {field: getattr(page, field) for field in type(page).__dataclass_fields__}
    return render_template("run.html", **facts, more_tensors=more, later_tensors=bool(after), legend=_LEGEND)


@blueprint.get("/rules")
@query(RulesQuery)
def rules(query: RulesQuery) -> str:
    """The rules by family; a level, a family and words choose among them."""
    families = families_shown(query)
    return render_template(
        "rules.html",
        families=families,
        names=[family.name for family in families_shown(RulesQuery())],
        levels=["any", "error", "warning", "note"],
        asked=query,
        shown=sum(len(family.manuals) for family in families),
        total=len(every_rule()),
    )


@blueprint.get("/rules/<code>")
def rule(code: str) -> str:
    """A rule's manual, by code or name."""
    try:
        found = manual(code[:64])
    except UnknownRule:
        raise Problem("not-found", "There is no such rule.") from None
    return render_template("rule.html", manual=found)


@blueprint.get("/problems/<code>")
def problem(code: str) -> str:
    """What a problem's code means."""
    if code not in KINDS:
        raise Problem("not-found", "There is no such code.")
    return render_template("kind.html", kind=KINDS[code])


def _anchor(path: str | None, line: int, source: Any) -> str:
    """The address of a line: on this page if it shows it, else on this run's page of that file."""
    shown = source is not None and path in {None, source.path} and source.first <= line <= source.last
    if shown or path is None:
        return f"#L{line}"
    start = max(1, line - 20)
    return f"?file={quote(path)}&from={start}#L{line}"


def _signs(*rows: tuple[str, bool, bool, bool, str, float | None]) -> tuple[tuple[str, Sign], ...]:
    return tuple(
        (text, sign_of(is_leaf=leaf, requires_grad=requires, retains_grad=retains, grad=grad, grad_norm=norm))
        for text, leaf, requires, retains, grad, norm in rows
    )


_LEGEND = _signs(
    ("leaf, has a gradient", True, True, False, "present", 1.0),
    ("leaf, grad None", True, True, False, "none", None),
    ("leaf, grad all zero", True, True, False, "present", 0.0),
    ("leaf, NaN or Inf in grad", True, True, False, "present", float("nan")),
    ("leaf, requires no grad", True, False, False, "none", None),
    ("not a leaf", False, True, False, "not-read", None),
    ("not a leaf, retains grad", False, True, True, "none", None),
    ("the same, has a gradient", False, True, True, "present", 1.0),
)
