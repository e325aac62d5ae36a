"""The OpenAPI 3.1 document, made from what the views declare: their body and query models, and `answers`.

Every route of an `Operations` blueprint is in it, and nothing else: the pages are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flask import Blueprint, jsonify

from backprobe import __version__
from service.openapi import deprecation, examples
from service.openapi.address_parameters import header_parameters, path_parameters
from service.openapi.schemas import query_parameters, schemas_of
from service.problems.catalogue import KINDS
from service.schemas.responses.runs import ProblemTold
from service.web.body import LINES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Flask, Response
    from werkzeug.routing import Rule

    from service.limits.rates import Kind

F = TypeVar("F", bound="Callable[..., Any]")

ENDPOINT: Final = "openapi.spec"
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
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

ONCE: Final = ("idempotency-in-flight", "idempotency-mismatch")
"""Problems of operations that take an Idempotency-Key."""

STORING: Final = ("quota-exceeded", "database-full")
"""Problems of operations after which a tenant stores more than before."""


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


class Operations(Blueprint):
    """The operations of one resource, with the heading under which the document lists them."""

    def __init__(self, name: str, import_name: str, *, tag: str) -> None:
        super().__init__(name, import_name)
        self.tag = tag


def register(app: Flask) -> None:
    """Serve the document, which is made when it is first asked for."""
    made = cache(lambda: document(app))

    @app.get("/openapi.json", endpoint=ENDPOINT)
    def _spec() -> Response:
        return jsonify(made())


def document(app: Flask) -> dict[str, Any]:
    """Build the document of an application's operations."""
    models: set[type[Any]] = {ProblemTold}
    tags = {part.tag: {"name": part.tag} for part in app.blueprints.values() if isinstance(part, Operations)}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Backprobe", "version": __version__},
        "paths": _paths(app, models),
        "security": [{}, {"key": []}],
        "tags": list(tags.values()),
    }
    key = {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of POST /v1/keys, or BACKPROBE_API_KEY of the server, if it is set.",
    }
    found["components"] = {"schemas": schemas_of(models, _REF), "securitySchemes": {"key": key}}
    examples.complete(found)
    return found


def _paths(app: Flask, models: set[type[Any]]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        part = app.blueprints.get(rule.endpoint.rpartition(".")[0])
        if not isinstance(part, Operations):
            continue
        path, view = _template(rule), app.view_functions[rule.endpoint]
        for method in _METHODS:
            if method in (rule.methods or ()):
                operation = paths.setdefault(path, {})[method.lower()] = {"tags": [part.tag], **_texts(view)}
                _fill(operation, path, view, models)
    return paths


def _texts(view: Any) -> dict[str, str]:
    """Take summary and description from the view's docstring: its first line, and the rest if there is one."""
    first, *rest = (line.strip() for line in (view.__doc__ or "").strip().splitlines())
    description = "\n".join(rest).strip()
    return {"summary": first} | ({"description": description} if description else {})


def _template(rule: Rule) -> str:
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)


def _fill(operation: dict[str, Any], path: str, view: Any, models: set[type[Any]]) -> None:
    declared: Operation = view.operation
    operation["operationId"] = view.__name__
    operation["security"] = [{}, {"key": [declared.scope]}]
    operation["parameters"] = [*path_parameters(path), *query_parameters(view), *header_parameters(declared.headers)]
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
    """Describe the body as NDJSON, if the view takes it."""
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
