"""Programs as they were sent: kept by content, told, and read back file by file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from flask import Response, request

from service.api.records.record import NoQuery
from service.auth.caller import caller
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.program_checks import SOURCE_NAME, Snippet
from service.schemas.requests import File, SnippetAsked
from service.web.body import body, pointer, query
from service.web.idempotency import storing
from service.web.reply import REVISION, json_reply
from store import queries
from store.database.ids import is_id
from store.runs import snippets
from store.runs.snippets import SnippetFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database.session import Transaction

blueprint = Operations("snippets", __name__, tag="Runs")

_TEXT: Final[dict[str, dict[str, Any]]] = {"text/plain": {"schema": {"type": "string"}}}
_SAME: Final = Answer(text="Not changed since.")


@dataclass(frozen=True, kw_only=True)
class SnippetLinks:
    """Addresses of what belongs to a snippet. files: by path."""

    self: str
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class SnippetTold:
    """A program as it was sent; the same files and entry have the same id. bytes: of all files.

    Attributes:
        named: Whether its file was named; false: it came as `source` alone, and `entry` is what it was called by us.
    """

    id: str
    entry: str
    named: bool
    bytes: int
    created_at: str
    files: list[SnippetFile]
    links: SnippetLinks


def of_source(source: str, entry: str | None) -> Snippet:
    """Build the program of one file. `entry` is its name; None: it was sent without one."""
    path = entry or SOURCE_NAME
    return Snippet(files={path: source}, entry=path, named=entry is not None, pointers={path: "#/source"})


def of_files(files: Sequence[File], entry: str | None) -> Snippet:
    """Build the program of these files.

    Raises:
        Problem: `no-entry-point`; `invalid-request`: a path is there twice.
    """
    texts: dict[str, str] = {}
    for at, file in enumerate(files):
        if file.path in texts:
            detail = f"{file.path} is there twice."
            place = Place(pointer=pointer(("files", at, "path")), code="doubled-path", detail=detail)
            raise Problem("invalid-request", detail, places=(place,))
        texts[file.path] = file.text
    start = entry or (files[0].path if len(files) == 1 else None)
    if start is None or snippets.find_entry_file(texts, start) is None:
        detail = "Several files, and no `entry`." if start is None else f"{start} is no file and no module of `files`."
        place = Place(pointer="#/entry", code="no-entry-point", detail=detail)
        raise Problem("no-entry-point", detail, places=(place,))
    pointers = {file.path: pointer(("files", at, "text")) for at, file in enumerate(files)}
    return Snippet(files=texts, entry=start, pointers=pointers)


def load_program(public_id: str) -> Snippet:
    """Load the program of a stored snippet.

    Raises:
        Problem: `not-found`, `source-not-kept`.
    """
    with context().database.read() as transaction:
        found = _snippet_of(transaction, public_id)
        files = snippets.program_of(transaction, found)
    pointers = dict.fromkeys(files, "#/snippet")
    return Snippet(files=files, entry=found.entry, named=found.named, pointers=pointers)


def _snippet_of(transaction: Transaction, public_id: str) -> snippets.Snippet:
    """Load the snippet of that id, with its files.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant; `source-not-kept`.
    """
    asked = caller()
    scope = snippets.Scope(tenant_id=asked.tenant_id, project_id=asked.project_id)
    found = snippets.get(transaction, scope, public_id) if is_id("snp", public_id) else None
    if found is None:
        raise Problem("not-found", f"There is no snippet {public_id[:40]}.")
    if not found.files:
        raise Problem("source-not-kept", f"The program of snippet {found.id} was deleted.")
    return found


def _snippet_to_json(found: snippets.Snippet) -> dict[str, Any]:
    told = queries.as_json(found)
    del told["number"]
    base = f"/v1/snippets/{found.id}"
    files = {file.path: f"{base}/files/{quote(file.path)}" for file in found.files}
    return {**told, "links": {"self": base, "files": files}}


@blueprint.post("/v1/snippets")
@body(SnippetAsked)
@answers(
    {
        201: Answer(text="It is kept; Location has it.", model=SnippetTold, headers=("Location",)),
        200: Answer(text="It was kept already, under this id.", model=SnippetTold, headers=("Location",)),
    },
    problems=("syntax-error", "no-entry-point", "too-large", *STORING, *ONCE),
    headers=("Idempotency-Key",),
    scope="runs:write",
)
def keep_snippet(body: SnippetAsked) -> Response:
    """Keep a program, so that runs can name it as `snippet`. It is checked as for a run, and nothing runs.

    The source goes with the record of the last run of it, or after seven days in which nobody ran it, and comes back
    when it is sent again.
    """
    sent = of_files(body.files, body.entry)
    sent.check(caller().tenant_id)
    tenant_id = caller().tenant_id
    with storing() as write:
        kept = snippets.keep(write.transaction, sent.files, sent.entry, tenant_id=tenant_id)
        if not kept.fresh:
            snippets.asked_again(write.transaction, kept.number)
        if write.known is None:
            write.done("snippet.keep", kept.id)
        found = snippets.get(write.transaction, snippets.Scope(tenant_id=tenant_id), kept.id)
    if found is None:
        raise RuntimeError("a snippet that was just kept is not there")
    headers = {"Location": f"/v1/snippets/{kept.id}", **write.headers}
    return json_reply(_snippet_to_json(found), 201 if kept.fresh else 200, headers)


@blueprint.get("/v1/snippets/<snippet>")
@query(NoQuery)
@answers(
    {200: Answer(text="The snippet.", model=SnippetTold, headers=("ETag",)), 304: _SAME},
    problems=("source-not-kept",),
    headers=("If-None-Match",),
)
def get_snippet(snippet: str) -> Response:
    """A program as it was sent: its files with their sizes and hashes. A key of one project sees what its runs ran."""
    with context().database.read() as transaction:
        found = _snippet_of(transaction, snippet)
    return _conditional(json_reply(_snippet_to_json(found)), f"{found.id}-{REVISION}", "private, max-age=86400")


@blueprint.get("/v1/snippets/<snippet>/files/<path:path>")
@query(NoQuery)
@answers(
    {
        200: Answer(text="The file, as it was sent.", media=_TEXT, headers=("ETag",)),
        304: _SAME,
    },
    problems=("source-not-kept",),
    headers=("If-None-Match",),
)
def get_snippet_file(snippet: str, path: str) -> Response:
    """One file of a program, raw."""
    with context().database.read() as transaction:
        found = _snippet_of(transaction, snippet)
        raw = snippets.body_of(transaction, found, path)
    if raw is None:
        raise Problem("not-found", f"Snippet {found.id} has no file {path[:200]}.")
    (digest,) = (file.sha256 for file in found.files if file.path == path)
    return _conditional(Response(raw, mimetype="text/plain"), digest, "private, max-age=31536000, immutable")


def _conditional(response: Response, tag: str, cached: str) -> Response:
    """Add an ETag to the answer; 304 if the client has this state already."""
    response.headers["Cache-Control"] = cached
    response.set_etag(tag)
    response.make_conditional(request)
    return response
