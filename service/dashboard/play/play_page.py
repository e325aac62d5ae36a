"""The pages `/`, `/play` and `/play/SNIPPET`: an editor with a program in it, and what a form without scripts sends."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from flask import g, redirect, render_template, request
from pydantic import Field

from backprobe.rules.framework.manual import UnknownRule, manual
from backprobe.show.amounts import count_noun
from backprobe.show.plain_text import plain
from service.api.runs.runs import RunsQuery, runs_page
from service.api.runs.snippets import load_program
from service.api.runs.submission import submit_source
from service.auth.caller import caller, demand
from service.context import context
from service.dashboard.assets import asset
from service.dashboard.pages import blueprint, first_steps, key_line, runs_get_now
from service.dashboard.play.play_examples import EXAMPLES, Example
from service.problems.errors import Problem
from service.web.body import Strict, query
from service.web.parameters import Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Response

    from service.program_checks import Snippet

QUESTIONS: Final = (
    ("Why is this .grad None?", "leaf"),
    ("Why is it wrong: NaN, zero, doubled?", "numeric"),
    ("What keeps this graph in memory?", "graph"),
    ("Does this training loop do what it should?", "training"),
)
"""Each with the family of rules that answers it."""

_BY_NAME: Final = {example.name: example for example in EXAMPLES}


class PlayQuery(Strict):
    """What the playground opens with."""

    example: Literal["none", "memory", "nan", "train"] = "none"
    run: Annotated[str, Field(max_length=40)] | None = Field(default=None, description="Whose answer is shown beside.")
    rule: Annotated[str, Field(max_length=64)] | None = Field(default=None, description="Whose manual has the program.")
    program: Annotated[Whole, Field(ge=0, le=99)] = Field(default=0, description="Which of them, from 0.")


@blueprint.get("/")
@query(PlayQuery)
def home(query: PlayQuery) -> str:
    """Show the playground, and below it the last runs."""
    page, _more = runs_page("page start", RunsQuery(limit=8))
    return _render_play(_BY_NAME[query.example], None, below={**first_steps(), "runs": page, "questions": QUESTIONS})


@blueprint.get("/play")
@query(PlayQuery)
def play(query: PlayQuery) -> str:
    """Show the playground with an example, of the page or of a rule's manual."""
    if query.rule is None:
        return _render_play(_BY_NAME[query.example], None)
    try:
        programs = [section.text for section in manual(query.rule).sections if section.is_code]
    except UnknownRule as error:
        raise Problem("not-found", f"{str(error)[:1].upper()}{str(error)[1:]}") from None
    if query.program >= len(programs):
        raise Problem("not-found", f"The manual of {query.rule} has {count_noun(len(programs), 'program')}.")
    return _render_play(Example(name="", question="", source=programs[query.program]), None)


@blueprint.get("/play/<snippet>")
@query(PlayQuery)
def play_snippet(snippet: str, query: PlayQuery) -> str:  # noqa: ARG001 - checked here, read by the page's script
    """Show the playground with a program that somebody sent."""
    return _render_play(None, load_program(snippet), snippet=snippet)


@blueprint.post("/play")
def play_form() -> Response:
    """Run what the form says, as `POST /v1/runs` does, and show the run."""
    demand("runs:write")
    context().rates.check(caller(), "submits")
    text = request.form.get("source", "").replace("\r\n", "\n")
    if not text.strip():
        raise Problem("invalid-request", "The program is empty. Type a program and send the form again.")
    return redirect(f"/runs/{submit_source(text)}", 303)


def _render_play(
    example: Example | None,
    program: Snippet | None,
    snippet: str | None = None,
    below: Mapping[str, Any] | None = None,
) -> str:
    """Render the page with an example or a program; `below` is what stands under it on the start page."""
    g.style_nonce = secrets.token_urlsafe(16)
    source, entry, others = "", None, dict[str, str]()
    if program is not None:
        source = program.files[program.entry]
        others = {path: text for path, text in program.files.items() if path != program.entry}
        entry = program.entry if program.named or others else None
    elif example is not None:
        source = example.source
    facts = {
        "is_start": below is not None,
        "examples": EXAMPLES,
        "example": None if example is None else example.name,
        # What a page must not obey is edited as an escape.
        "shown": plain(source, keep_newlines=True, tab="\t"),
        "now": runs_get_now("cpu"),
        "opened": {"snippet": snippet, "entry": entry, "files": others, "key_line": key_line()},
        "editor": asset("play.js"),
        "style_nonce": g.style_nonce,
    }
    return render_template("play.html", **{**(below or {}), **facts})
