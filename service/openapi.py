"""The OpenAPI 3.1 document, made from what the views declare: their body and query models, and `answers`.

APIFlask collects the routes; the parameters, bodies, answers and schemas are set here, because its own document calls
bodies optional and errors by its own shape (api.md, 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from service import deprecation, openapi_examples
from service.api.body import LINES
from service.openapi_schemas import query_parameters, schemas_of
from service.problems import KINDS
from service.told.runs import ProblemTold
from store.queries import LISTABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiflask import APIFlask
    from werkzeug.routing import Rule

    from service.rates import Kind

F = TypeVar("F", bound="Callable[..., Any]")

_REF: Final = "#/components/schemas/{model}"
_EVERYWHERE: Final = (
    "unauthenticated",
    "scope-missing",
    "foreign-host",
    "rate-limited",
    "internal-error",
    "unavailable",
    "too-many-at-work",
)
"""Problems that any address can answer."""

_PATH_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "run": {"type": "string", "description": "Id of a run.", "pattern": "^run_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "no": {"type": "integer", "minimum": 0, "description": "Number of a tensor within its run."},
    "snippet": {
        "type": "string",
        "description": "Id of a snippet.",
        "pattern": "^snp_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "path": {"type": "string", "description": "Path of a file of the snippet; its slashes stay.", "maxLength": 200},
    "n": {"type": "integer", "minimum": 0, "description": "Number of the frame, from 0."},
    "node": {"type": "integer", "minimum": 0, "description": "Number of an autograd node within its run."},
    "call": {"type": "integer", "minimum": 0, "description": "Number of a backward call within its run, from 0."},
    "table": {
        "type": "string",
        "description": "A table of the record; docs/reference/record.md tells its fields.",
        "enum": list(LISTABLE),
    },
    "name": {"type": "string", "description": "Name or code of a rule.", "pattern": "^[A-Za-z0-9-]{1,64}$"},
    "finding": {"type": "string", "description": "Id of a finding.", "pattern": "^f_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "group": {
        "type": "string",
        "description": "Id of a group of findings.",
        "pattern": "^fg_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "key": {"type": "string", "description": "Id of a key.", "pattern": "^key_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "project": {"type": "string", "description": "Id of a project.", "pattern": "^prj_[A-Za-z0-9]{1,40}$"},
    "webhook": {
        "type": "string",
        "description": "Id of a webhook.",
        "pattern": "^wh_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "delivery": {
        "type": "string",
        "description": "Id of a delivery.",
        "pattern": "^dlv_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "audit": {"type": "string", "description": "Id of an audit.", "pattern": "^aud_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "policy": {"type": "string", "description": "Id of a policy.", "pattern": "^pol_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "code": {"type": "string", "description": "Code of a problem.", "pattern": "^[a-z-]+$"},
}
ONCE: Final = ("idempotency-in-flight", "idempotency-mismatch")
"""Problems of operations that take an Idempotency-Key."""

STORING: Final = ("quota-exceeded", "database-full")
"""Problems of operations after which a tenant stores more than before."""

_ETAG: Final = r'(W/)?"[!#-~]*"'

_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "Idempotency-Key": {
        "description": "Yours, new for each request: sent again within a day it has no second effect.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "Prefer": {
        "description": "`wait=N`: answer when the run has ended, or after N seconds, at most 30.",
        "schema": {"type": "string"},
    },
    "traceparent": {
        "description": "W3C trace context: the worker's log continues it. One that cannot be read is ignored.",
        "schema": {"type": "string"},
    },
    "Accept": {
        "description": "Media type of the answer; `format` says it too, and wins.",
        "schema": {"type": "string"},
    },
    "Last-Event-ID": {
        "description": "`id` of the last event that was received: the stream goes on behind it.",
        "schema": {"type": "string", "pattern": "^[0-9]{0,9}$"},
    },
    "Range": {
        "description": "`bytes=FIRST-LAST`: only those (RFC 9110); the answer is 206.",
        "schema": {"type": "string"},
    },
    "If-Match": {
        "description": "The ETag of what is changed, as it was read: 412 if it has changed since, 428 without.",
        "required": True,
        "schema": {"type": "string", "pattern": rf"^(\*|{_ETAG}( *, *{_ETAG})*)$"},
    },
    "If-None-Match": {
        "description": "An ETag from before: the answer is 304 if nothing has changed.",
        "schema": {"type": "string"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One way in which an operation ends well.

    Attributes:
        model: Schema of the JSON; None: no JSON, then `media` says what.
    """

    text: str
    model: type[Any] | None = None
    media: dict[str, dict[str, Any]] = field(default_factory=dict)
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a view declares beside its body and query."""

    answers: dict[int, Answer]
    problems: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    scope: str = "read"
    rate: Kind = "reads"
    takes: dict[str, dict[str, Any]] = field(default_factory=dict)


def answers(
    found: dict[int, Answer],
    *,
    problems: tuple[str, ...] = (),
    headers: tuple[str, ...] = (),
    scope: str = "read",
    rate: Kind = "reads",
    takes: dict[str, dict[str, Any]] | None = None,
) -> Callable[[F], F]:
    """Declare how a view answers; the document is made of it.

    Args:
        found: By status.
        problems: Codes special to this operation.
        headers: Request headers that it reads.
        scope: What a key must have for it.
        rate: Which limit it counts for: `submits`, if a worker has to work for it.
        takes: Media of a body that is no JSON.
    """

    def decorate(view: F) -> F:
        told = {"problems": problems, "headers": headers, "scope": scope, "rate": rate, "takes": takes or {}}
        view.operation = Operation(answers=found, **told)  # type: ignore[attr-defined] for the document
        return view

    return decorate


def register(app: APIFlask) -> None:
    """Install the processor that completes APIFlask's document."""

    @app.spec_processor
    def _complete(document: Any) -> Any:  # a dict, since SPEC_FORMAT is JSON
        rules = {_template(rule): rule for rule in app.url_map.iter_rules()}
        models: set[type[Any]] = {ProblemTold}
        for path, item in document["paths"].items():
            for method, operation in item.items():
                view = _declared(app, rules, path, method)
                _fill(operation, path, view, models)
        document.setdefault("components", {})["schemas"] = schemas_of(models, _REF)
        document["components"]["securitySchemes"] = {
            "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A key of POST /v1/keys, or BACKPROBE_API_KEY of the server, if it is set.",
            }
        }
        document["security"] = [{}, {"key": []}]
        openapi_examples.complete(document)
        document["tags"] = list({tag["name"]: tag for tag in document.get("tags", ())}.values())
        return document


def _template(rule: Rule) -> str:
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)


def _declared(app: APIFlask, rules: dict[str, Rule], path: str, method: str) -> Any:
    candidates = [
        rule for rule in app.url_map.iter_rules() if _template(rule) == path and method.upper() in (rule.methods or ())
    ]
    return app.view_functions[(candidates or [rules[path]])[0].endpoint]


def _fill(operation: dict[str, Any], path: str, view: Any, models: set[type[Any]]) -> None:
    declared: Operation = view.operation
    operation["operationId"] = view.__name__
    operation["security"] = [{}, {"key": [declared.scope]}]
    operation["parameters"] = [*_path_parameters(path), *query_parameters(view), *_header_parameters(declared)]
    if (model := getattr(view, "body_model", None)) is not None:
        models.add(model)
        schema = {"$ref": _REF.format(model=model.__name__)}
        operation["requestBody"] = {
            "required": not view.body_optional,
            "content": {"application/json": {"schema": schema}, **_lines(view, models)},
        }
    elif declared.takes:
        operation["requestBody"] = {"required": True, "content": declared.takes}
    operation["responses"] = {str(status): _response(answer, models) for status, answer in declared.answers.items()}
    for status, codes in sorted(_problems(path, view, declared).items()):
        operation["responses"][str(status)] = {
            "description": ", ".join(codes),
            "content": {"application/problem+json": {"schema": {"$ref": _REF.format(model="ProblemTold")}}},
        }
    deprecation.describe(view, operation)


def _lines(view: Any, models: set[type[Any]]) -> dict[str, Any]:
    """The body as NDJSON, if the view takes it."""
    if not view.body_lines:
        return {}
    models.update(view.body_lines)
    first, further = (model.__name__ for model in view.body_lines)
    text = f"Line 1 is {first}, each further line {further}: JSON without line breaks, ended by one."
    return {LINES: {"schema": {"type": "string", "description": text}}}


def _problems(path: str, view: Any, declared: Operation) -> dict[int, list[str]]:
    codes = [*_EVERYWHERE, *declared.problems]
    codes += ["not-found"] if "{" in path else []
    if hasattr(view, "body_model"):
        codes += ["foreign-origin", "malformed-request", "too-large", "unsupported-media-type", "invalid-request"]
    if hasattr(view, "query_model"):
        codes += ["invalid-request", "repeated-parameter"]
        codes += ["bad-cursor"] if "cursor" in view.query_model.model_fields else []
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(KINDS[code].status, []).append(code)
    return by_status


def _path_parameters(path: str) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{(\w+)}", path):
        schema = dict(_PATH_PARAMETERS[name])
        text = schema.pop("description")
        found.append({"name": name, "in": "path", "required": True, "description": text, "schema": schema})
    return found


def _header_parameters(declared: Operation) -> list[dict[str, Any]]:
    return [{"name": name, "in": "header", **_HEADERS[name]} for name in declared.headers]


def _response(answer: Answer, models: set[type[Any]]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.text}
    if answer.headers:
        response["headers"] = {name: {"schema": {"type": "string"}} for name in answer.headers}
    if answer.model is not None:
        models.add(answer.model)
        schema = {"$ref": _REF.format(model=answer.model.__name__)}
        response["content"] = {"application/json": {"schema": schema}, **answer.media}
    elif answer.media:
        response["content"] = answer.media
    return response
