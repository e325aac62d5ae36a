"""The OpenAPI 3.1 document, made from what the views declare: their body and query models, and `answers`.

APIFlask collects the routes; the parameters, bodies, answers and schemas are set here, because its own document calls
bodies optional and errors by its own shape (api.md, 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from service.api.told import ProblemTold
from service.problems import KINDS
from store.queries import LISTABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiflask import APIFlask
    from werkzeug.routing import Rule

F = TypeVar("F", bound="Callable[..., Any]")

_REF: Final = "#/components/schemas/{model}"
_EVERYWHERE: Final = ("unauthenticated", "scope-missing", "foreign-host", "internal-error", "unavailable")
"""Problems that any address can answer."""

_BOUNDS: Final = {"ge": "minimum", "le": "maximum"}

_PATH_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "run": {"type": "string", "description": "Id of a run.", "pattern": "^run_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "no": {"type": "integer", "minimum": 0, "description": "Number of a tensor within its run."},
    "table": {
        "type": "string",
        "description": "A table of the record; docs/reference/record.md tells its fields.",
        "enum": list(LISTABLE),
    },
    "name": {"type": "string", "description": "Name or code of a rule.", "pattern": "^[A-Za-z0-9-]{1,64}$"},
    "finding": {"type": "string", "description": "Id of a finding.", "pattern": "^f_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "key": {"type": "string", "description": "Id of a key.", "pattern": "^key_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "code": {"type": "string", "description": "Code of a problem.", "pattern": "^[a-z-]+$"},
}
ONCE: Final = ("idempotency-in-flight", "idempotency-mismatch")
"""Problems of operations that take an Idempotency-Key."""

_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "Idempotency-Key": {
        "description": "Yours, new for each request: sent again within a day it has no second effect.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "Prefer": {
        "description": "`wait=N`: answer when the run has ended, or after N seconds, at most 30.",
        "schema": {"type": "string"},
    },
    "Accept": {
        "description": "Media type of the answer; `format` says it too, and wins.",
        "schema": {"type": "string"},
    },
    "Last-Event-ID": {
        "description": "`id` of the last event that was received: the stream goes on behind it.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,9}$"},
    },
    "If-None-Match": {
        "description": "An ETag from before: the answer is 304 if nothing has changed.",
        "schema": {"type": "string"},
    },
}


class _Schema(GenerateJsonSchema):
    """JSON Schema of what we send: a number that JSON cannot hold is a string, never null (api.md, 2)."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        return {"anyOf": [super().float_schema(schema), {"enum": ["NaN", "Infinity", "-Infinity"]}]}

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        made = super().dataclass_schema(schema)
        if "cls" in made.get("properties", {}):  # "class" is no name for a field of Python's
            made["properties"] = {_json_name(name): value for name, value in made["properties"].items()}
            made["required"] = [_json_name(name) for name in made["required"]]
        return made


def _json_name(field_name: str) -> str:
    return "class" if field_name == "cls" else field_name


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


def answers(
    found: dict[int, Answer],
    *,
    problems: tuple[str, ...] = (),
    headers: tuple[str, ...] = (),
    scope: str = "read",
) -> Callable[[F], F]:
    """Declare how a view answers; the document is made of it.

    Args:
        found: By status.
        problems: Codes special to this operation.
        headers: Request headers that it reads.
        scope: What a key must have for it.
    """

    def decorate(view: F) -> F:
        view.operation = Operation(answers=found, problems=problems, headers=headers, scope=scope)  # type: ignore[attr-defined] for the document
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
        ordered = sorted(models, key=lambda model: model.__name__)
        _, schemas = TypeAdapter.json_schemas(
            [(model.__name__, "validation", TypeAdapter(model)) for model in ordered],
            ref_template=_REF,
            schema_generator=_Schema,
        )
        document.setdefault("components", {})["schemas"] = _with_bounds(schemas["$defs"])
        document["components"]["securitySchemes"] = {
            "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "A key of POST /v1/keys, or BACKPROBE_API_KEY of the server, if it is set.",
            }
        }
        document["security"] = [{}, {"key": []}]
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
    operation["parameters"] = [*_path_parameters(path), *_query_parameters(view), *_header_parameters(declared)]
    if (model := getattr(view, "body_model", None)) is not None:
        models.add(model)
        schema = {"$ref": _REF.format(model=model.__name__)}
        operation["requestBody"] = {
            "required": not view.body_optional,
            "content": {"application/json": {"schema": schema}},
        }
    operation["responses"] = {str(status): _response(answer, models) for status, answer in declared.answers.items()}
    for status, codes in sorted(_problems(path, view, declared).items()):
        operation["responses"][str(status)] = {
            "description": ", ".join(codes),
            "content": {"application/problem+json": {"schema": {"$ref": _REF.format(model="ProblemTold")}}},
        }


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


def _with_bounds(described: Any) -> Any:
    """A schema whose bounds have JSON Schema's words: where a text is read first, pydantic leaves them in its own."""
    if isinstance(described, list):
        return [_with_bounds(one) for one in described]
    if not isinstance(described, dict):
        return described
    return {_BOUNDS.get(key, key): _with_bounds(value) for key, value in described.items()}


def _query_parameters(view: Any) -> list[dict[str, Any]]:
    model: type[BaseModel] | None = getattr(view, "query_model", None)
    if model is None:
        return []
    # What a value means, not the text that it is sent as: only so the document has its bounds and its words.
    schema = model.model_json_schema(mode="serialization")
    needed = {field.alias or name for name, field in model.model_fields.items() if field.is_required()}
    found = []
    for name, described in schema.get("properties", {}).items():
        kept = {key: value for key, value in _without_null(described).items() if key not in {"title", "description"}}
        kept = _with_bounds(kept)
        parameter: dict[str, Any] = {"name": name, "in": "query", "required": name in needed, "schema": kept}
        if text := described.get("description"):
            parameter["description"] = text
        if kept.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """`X | None = None` in a model means that the parameter may be absent; `null` cannot be sent in a query."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    kept = {key: value for key, value in schema.items() if key not in {"anyOf", "default"} or value is not None}
    if len(options) == 1:
        kept.pop("anyOf")
        kept |= options[0]
    return kept


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
