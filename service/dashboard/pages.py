"""The pages: runs, one run, a rule's manual, what a problem's code means. Server-rendered; none needs JavaScript."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlencode

from flask import Blueprint, current_app, redirect, render_template, request
from jinja2 import StrictUndefined
from pydantic import Field

from backprobe import __version__
from backprobe.record.state_flags import NAMES
from backprobe.rules.framework.manual import UnknownRule, every_rule, manual
from backprobe.show.amounts import counted
from service.api.runs import ranks as rank_runs
from service.api.runs.comparison import comparison
from service.api.runs.run_json import recorded, run_of
from service.api.runs.runs import RunsQuery, runs_page
from service.auth.caller import caller
from service.context import context
from service.dashboard import words
from service.dashboard.assets import asset
from service.dashboard.cards import explained
from service.dashboard.compare_page import ComparePageQuery, compared
from service.dashboard.lines import LINES_PER_PAGE
from service.dashboard.rules_page import RulesQuery, families_shown
from service.dashboard.run_page import MOST_CARDS, run_page
from service.dashboard.signs import Sign, sign_of
from service.dashboard.tensor_page import tensor_shown
from service.problems.catalogue import KINDS
from service.problems.errors import Problem
from service.process.readiness import standing
from service.web.body import Strict, query
from service.web.parameters import Cursor, Whole
from store import queries
from store.findings import findings

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
    first_line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = Field(default=None, alias="from")
    tensors: Cursor | None = None
    line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = Field(default=None, description="Selected.")
    t: Annotated[Whole, Field(ge=0, le=2**31 - 1)] | None = Field(default=None, description="Selected tensor.")
    call: Annotated[Whole, Field(ge=0, le=2**31 - 1)] | None = Field(default=None, description="Selected call.")
    open: Annotated[str, Field(max_length=1200)] | None = Field(default=None, description="Boxes that are open.")
    depth: Annotated[Whole, Field(ge=0, le=64)] | None = Field(default=None, description="Levels that are open beside.")
    focus: Annotated[str, Field(max_length=12)] | None = Field(default=None, description="The call that is seen alone.")
    sort: Annotated[str, Field(max_length=20)] | None = Field(default=None, description="Of the rows over steps.")

    @property
    def first(self) -> int:
        """The first line to show: what was asked for, else one from which the selected line is seen."""
        if self.first_line is not None:
            return self.first_line
        return 1 if self.line is None or self.line <= LINES_PER_PAGE else self.line - LINES_PER_PAGE // 2


@blueprint.record_once
def _words(state: BlueprintSetupState) -> None:
    words.register(state.app.jinja_env)
    state.app.jinja_env.undefined = StrictUndefined
    state.app.jinja_env.trim_blocks = state.app.jinja_env.lstrip_blocks = True
    state.app.jinja_env.globals.update(
        version=__version__, anchor=_anchor, script=asset("pages.js"), state_flags=NAMES, has_page=_has_page
    )


@blueprint.after_request
def _uncached(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.before_request
def _without_blanks() -> Redirect | None:
    """A form sends its empty fields too: they are no filters."""
    given = [(key, value) for key, value in request.args.items(multi=True)]
    kept = [(key, value) for key, value in given if value]
    if kept == given:
        return None
    return redirect(f"{request.path}?{urlencode(kept)}" if kept else request.path)


@blueprint.before_request
def _two_ticked() -> Redirect | None:
    """The list of runs sends those that are ticked, in its order; ids begin with the time, so the older is before."""
    ticked = request.args.getlist("run")
    if request.endpoint != "pages.compare" or not ticked:
        return None
    if len(ticked) != 2:
        raise Problem("invalid-request", f"{counted(len(ticked), 'run is', 'runs are')} ticked; two are compared.")
    first, second = sorted(ticked)
    return redirect(f"/compare?{urlencode({'a': first, 'b': second})}")


@blueprint.get("/")
def home() -> str:
    """Where to start: the last runs, and an example."""
    page, _more = runs_page("page start", RunsQuery(limit=8))
    with context().database.read() as transaction:
        now = _standing(transaction, "cpu")
    return render_template("start.html", runs=page, now=now, questions=_QUESTIONS, **_first_steps())


def _first_steps() -> dict[str, str]:
    """What the ways to a first run are told with."""
    key_line = "" if context().settings.api_key is None else '-H "Authorization: Bearer $BACKPROBE_API_KEY" '
    return {"example": EXAMPLE, "origin": request.host_url.rstrip("/"), "key_line": key_line}


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
        asked=query,
        given=request.args,
        filtered=bool(set(request.args) - {"cursor", "limit"}),
        newest=f"?{urlencode(again)}" if (again := [one for one in request.args.items() if one[0] != "cursor"]) else "",
        more=more,
        later=query.cursor is not None,
        **_first_steps(),
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
        page = run_page(transaction, row, file=query.file, first=query.first, after=after, waits_for=waits_for)
    if query.file is not None and page.source is None and row.snippet is not None:
        raise Problem("not-found", f"Run {row.id} has no file {query.file}.")
    more = None if page.next_tensors is None else shared.cursors.sign(listing, {}, [page.next_tensors])
    facts: dict[str, Any] = {field: getattr(page, field) for field in type(page).__dataclass_fields__}
    return render_template("run.html", **facts, more_tensors=more, later_tensors=bool(after), legend=_LEGEND)


@blueprint.get("/runs/<run>/tensors/<int:no>")
def tensor(run: str, no: int) -> str:
    """One tensor: why its gradient is so, and its life."""
    with context().database.read() as transaction:
        row = recorded(run_of(transaction, run))
        full = queries.tensor(transaction, row, no)
        if full is None:
            raise Problem("not-found", f"Run {row.id} has no tensor {no}.")
        about = findings.page(transaction, row, limit=MOST_CARDS)
    found = [one for one in about.items if no in explained(one.finding)]
    return render_template("tensor.html", run=row, shown=tensor_shown(full), findings=found)


@blueprint.get("/runs/<run>/ranks")
def ranks(run: str) -> str:
    """The ranks of a run's job beside each other."""
    row, job = rank_runs.comparison(run)
    first = job.first_difference
    norms = {} if first is None else {one.rank: one.grad_norm for one in first.norms}
    return render_template("ranks.html", run=row, job=job, norms=defaultdict(lambda: None, norms))


@blueprint.get("/compare")
@query(ComparePageQuery)
def compare(query: ComparePageQuery) -> str:
    """What changed between two runs."""
    if query.a is None or query.b is None:
        raise Problem(
            "invalid-request", "Two runs are compared: /compare?a=...&b=..., or two that are ticked in /runs."
        )
    shown = compared(queries.as_json(comparison(query.a, query.b)))
    with context().database.read() as transaction:
        a, b = run_of(transaction, query.a), run_of(transaction, query.b)
    return render_template("compare.html", a=a, b=b, shown=shown)


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
    spoken_of, _more = runs_page("page rule", RunsQuery(rule=[found.rule.name], limit=5))
    return render_template("rule.html", manual=found, runs=spoken_of)


@blueprint.get("/problems/<code>")
def problem(code: str) -> str:
    """What a problem's code means."""
    if code not in KINDS:
        raise Problem("not-found", "There is no such code.")
    return render_template("kind.html", kind=KINDS[code])


EXAMPLE: Final = """\
import torch

w = torch.ones(3, requires_grad=True) * 0.1
x = torch.tensor([1.0, 2.0, 3.0])
loss = (w * x).sum()
loss.backward()
print(w.grad)
"""
"""A program of seven lines with the commonest question."""

_QUESTIONS: Final = (
    ("Why is this .grad None?", "leaf"),
    ("Why is it wrong: NaN, zero, doubled?", "numeric"),
    ("What keeps this graph in memory?", "graph"),
    ("Does this training loop do what it should?", "training"),
)
"""Each with the family of rules that answers it."""


def _anchor(path: str | None, line: int, source: Any) -> str:
    """The address of a line: on this page if it shows it, else on this run's page of that file."""
    shown = source is not None and path in {None, source.path} and source.first <= line <= source.last
    if shown or path is None:
        return f"#L{line}"
    start = max(1, line - 20)
    return f"?file={quote(path)}&from={start}#L{line}"


def _has_page(path: str) -> bool:
    return any(rule.rule == path for rule in current_app.url_map.iter_rules())


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
