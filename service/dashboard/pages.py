"""The pages: runs, one run, a rule's manual, what a problem's code means. Server-rendered; none needs JavaScript."""

from __future__ import annotations

import datetime
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from flask import Blueprint, current_app, redirect, render_template, request
from jinja2 import StrictUndefined

from backprobe import __version__
from backprobe.record.state_flags import NAMES
from backprobe.rules.framework.manual import UnknownRule, every_rule, manual
from service.api.access.projects import projects_page
from service.api.runs import ranks as rank_runs
from service.api.runs.run_json import require_record, run_of
from service.api.runs.runs import RunsQuery, runs_page
from service.auth.caller import caller
from service.context import context
from service.dashboard import words
from service.dashboard.assets import asset
from service.dashboard.cards import list_evidence_tensors
from service.dashboard.curves.curves_section import CurvesAsked, load_curves, recent_runs
from service.dashboard.curves.life_line import draw_life
from service.dashboard.play.play_examples import EXAMPLES
from service.dashboard.rules_page import RulesQuery, families_shown
from service.dashboard.run.run_page_query import TENSOR_CHOICES, RunPageQuery
from service.dashboard.run_page import MOST_CARDS, run_page
from service.dashboard.signs import LEGEND
from service.dashboard.tensor_page import tensor_shown
from service.problems.catalogue import KINDS
from service.problems.errors import Place, Problem, keep_for_form
from service.process.readiness import standing
from service.web.body import LABEL, query, read_query
from service.web.parameters import Page
from store import queries
from store.access import projects
from store.findings import findings
from store.runs.reading import run_events

if TYPE_CHECKING:
    from flask import Response
    from flask.blueprints import BlueprintSetupState
    from werkzeug.wrappers import Response as Redirect

    from service.process.readiness import Standing
    from store.database.session import Transaction
    from store.runs.model import Queue

blueprint = Blueprint("pages", __name__)


VIEWS: Final = (
    ("Failed in the last hour", {"status": "failed", "since": "1h"}),
    ("Errors in the last hour", {"level": "error", "since": "1h"}),
    ("With errors", {"level": "error"}),
    ("Waiting or running", {"status": "queued,running"}),
    ("The last day", {"since": "1d"}),
)
"""Links to filters of the list of runs; any other is a bookmark of its address."""


RANK_COLUMNS: Final = ("steps", "step_seconds", "loss", "grad_norm", "anomaly", "heard_at")
"""Facts of a rank; one that no rank has told has no column."""


@blueprint.record_once
def _words(state: BlueprintSetupState) -> None:
    words.register(state.app.jinja_env)
    state.app.jinja_env.undefined = StrictUndefined
    state.app.jinja_env.trim_blocks = state.app.jinja_env.lstrip_blocks = True
    state.app.jinja_env.globals.update(
        version=__version__,
        anchor=_anchor,
        script=asset("pages.js"),
        asset=asset,
        state_flags=NAMES,
        has_page=_has_page,
    )


@blueprint.after_request
def _forbid_caching(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.before_request
def _without_blanks() -> Redirect | None:
    """Redirect to the address without empty fields: a form sends those too, but they are no filters."""
    given = [(key, value) for key, value in request.args.items(multi=True)]
    kept = [(key, value.strip()) for key, value in given if value.strip()]
    if kept == given:
        return None
    return redirect(f"{request.path}?{urlencode(kept)}" if kept else request.path)


def first_steps() -> dict[str, str]:
    """Return the texts of the ways to a first run."""
    return {"example": EXAMPLES[0].source, "origin": request.host_url.rstrip("/"), "key_line": key_line()}


def key_line() -> str:
    """Return the option of `curl` that sends the key, or nothing where the service asks for none."""
    return "" if context().settings.api_key is None else '-H "Authorization: Bearer $BACKPROBE_API_KEY" '


@blueprint.get("/runs")
def runs_list() -> str | Redirect | tuple[str, int]:
    """Show the runs, newest first. A wrong filter is explained below the form, which keeps what was typed."""
    if "label" in request.args:
        return _filter_by_label(request.args["label"])
    try:
        return _render_runs(read_query(RunsQuery))
    except Problem as problem:
        return _render_runs(RunsQuery(), keep_for_form(problem)), 422


def _filter_by_label(typed: str) -> str | Redirect | tuple[str, int]:
    """Lead from the form's `label=NAME=VALUE` to the parameter of the API."""
    name, equals, value = (part.strip() for part in typed.partition("="))
    if not (name and equals and value):
        detail = "Write a label as NAME=VALUE, such as team=vision."
        place = Place(parameter="label", code="invalid-label", detail=detail)
        return _render_runs(RunsQuery(), keep_for_form(Problem("invalid-request", detail, places=(place,)))), 422
    others = [(key, text) for key, text in request.args.items(multi=True) if key not in {"label", f"{LABEL}{name}"}]
    return redirect(f"/runs?{urlencode([*others, (f'{LABEL}{name}', value)])}")


def _render_runs(query: RunsQuery, fault: Problem | None = None) -> str:
    """Render the runs; with a fault the form alone."""
    page, more = ((), None) if fault else runs_page("page runs", query)
    given = request.args
    first = [(key, value) for key, value in given.items() if key != "cursor"]
    choices = projects_page("page projects of runs", Page()).items
    with context().database.read() as transaction:
        names = projects.names(transaction, {run.project for run in page}, tenant_id=caller().tenant_id)
    return render_template(
        "runs.html",
        runs=page,
        now=runs_get_now("cpu"),
        chosen=[status for status in given.get("status", "").split(",") if status],
        given=given,
        labels=[(key.removeprefix(LABEL), value) for key, value in given.items() if key.startswith(LABEL)],
        projects=choices,
        project_names={project.id: project.name for project in choices} | names,
        views=[(text, f"/runs?{urlencode(filters)}", filters == dict(first)) for text, filters in VIEWS],
        fault=fault,
        filtered=bool(set(given) - {"cursor", "limit", "sort"}),
        newest=f"?{urlencode(first)}" if first else "",
        more=more,
        later=query.cursor is not None,
        **first_steps(),
    )


def runs_get_now(queue: Queue) -> Standing:
    """Return what runs of a queue get now, in a separate transaction."""
    with context().database.read() as transaction:
        return _standing(transaction, queue)


def _standing(transaction: Transaction, queue: Queue) -> Standing:
    """Return what runs get now, with the reasons for the operator only."""
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
        asked = {"q": query.q, "show": query.show}
        after = shared.cursors.read(listing, asked, query.tensors)[0] if query.tensors else None
        waits_for = _standing(transaction, row.queue) if row.status == "queued" else None
        page = run_page(transaction, row, query, after=after, waits_for=waits_for)
        last_event, _ = run_events.standing(transaction, [row.run_id]).get(row.run_id, (0, row.ended))
        curves = load_curves(transaction, row, CurvesAsked(stat=query.stat, name=query.name, other=query.other))
        its_project = projects.names(transaction, [row.project], tenant_id=row.tenant_id).get(row.project)
    if query.file is not None and page.source is None and row.snippet is not None:
        raise Problem("not-found", f"Run {row.id} has no file {query.file}.")
    more = None if page.next_tensors is None else shared.cursors.sign(listing, asked, [page.next_tensors])
    facts: dict[str, Any] = {field: getattr(page, field) for field in type(page).__dataclass_fields__}
    facts |= {
        "asked": query,
        "tensor_choices": TENSOR_CHOICES,
        "curves": curves,
        "curve_runs": recent_runs(row),
        "given": request.args,
        "project_name": its_project,
    }
    facts |= {"last_event": last_event, "now": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")}
    return render_template("run.html", **facts, more_tensors=more, later_tensors=bool(after), legend=LEGEND)


@blueprint.get("/runs/<run>/tensors/<int:no>")
def tensor(run: str, no: int) -> str:
    """One tensor: why its gradient is so, and its life."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        full = queries.tensor(transaction, row, no)
        if full is None:
            raise Problem("not-found", f"Run {row.id} has no tensor {no}.")
        about = findings.page(transaction, row, limit=MOST_CARDS)
        shown = tensor_shown(full)
        changes = [] if shown.more_events else [event.moment for event in shown.events]
        life = draw_life(transaction, row, no, full.snapshots, changes, is_whole=not shown.cut_off)
    found = [item for item in about.items if no in list_evidence_tensors(item.finding)]
    return render_template("tensor.html", run=row, shown=shown, life=life, findings=found)


@blueprint.get("/runs/<run>/ranks")
def ranks(run: str) -> str:
    """Show the ranks of a run's job beside each other."""
    row, job = rank_runs.comparison(run)
    first = job.first_difference
    norms = {} if first is None else {norm.rank: norm.grad_norm for norm in first.norms}
    columns = {name for name in RANK_COLUMNS if any(getattr(rank, name) is not None for rank in job.items)}
    return render_template("ranks.html", run=row, job=job, columns=columns, norms=defaultdict(lambda: None, norms))


@blueprint.get("/rules")
@query(RulesQuery)
def rules(query: RulesQuery) -> str:
    """Show the rules by family; a level, a family and words choose among them."""
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
    """Show a rule's manual, by code or name."""
    try:
        found = manual(code[:64])
    except UnknownRule:
        raise Problem("not-found", "There is no such rule.") from None
    spoken_of, _more = runs_page("page rule", RunsQuery(rule=[found.rule.name], limit=5))
    return render_template("rule.html", manual=found, runs=spoken_of)


@blueprint.get("/problems/<code>")
def problem(code: str) -> str:
    """Show what a problem's code means."""
    if code not in KINDS:
        raise Problem("not-found", "There is no such code.")
    return render_template("kind.html", kind=KINDS[code])


def _anchor(path: str | None, line: int, source: Any) -> str:
    """Return the address of a line: on this page if it shows it, else on this run's page of that file."""
    shown = source is not None and path in {None, source.path} and source.first <= line <= source.last
    if shown or path is None:
        return f"#L{line}"
    start = max(1, line - 20)
    return f"?file={quote(path)}&from={start}#L{line}"


def _has_page(path: str) -> bool:
    return any(rule.rule == path for rule in current_app.url_map.iter_rules())
