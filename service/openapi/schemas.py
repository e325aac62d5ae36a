"""JSON Schemas of the OpenAPI document: of bodies, of what we send, and of query parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from service.web.body import LABEL, LABELS

if TYPE_CHECKING:
    from collections.abc import Iterable

_BOUNDS: Final = {"ge": "minimum", "le": "maximum"}


class AnswerSchema(GenerateJsonSchema):
    """JSON Schema of what we send: a number that JSON cannot hold is a string, never null."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a float: a number, or one of three words."""
        return {"anyOf": [super().float_schema(schema), {"enum": ["NaN", "Infinity", "-Infinity"]}]}

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        """With the names that the JSON has."""
        made = super().dataclass_schema(schema)
        if "cls" in made.get("properties", {}):  # "class" is no name for a field of Python's
            made["properties"] = {_json_name(name): value for name, value in made["properties"].items()}
            made["required"] = [_json_name(name) for name in made["required"]]
        return made


def _json_name(field_name: str) -> str:
    return "class" if field_name == "cls" else field_name


def schemas_of(models: Iterable[type[Any]], ref: str) -> dict[str, Any]:
    """Schemas of all models, and of what is in them, by name; bodies are pydantic's models, answers dataclasses."""
    found: dict[str, Any] = {}
    ordered = sorted(models, key=lambda model: model.__name__)
    for asked, generator in ((True, GenerateJsonSchema), (False, AnswerSchema)):
        some = [model for model in ordered if issubclass(model, BaseModel) == asked]
        _, schemas = TypeAdapter.json_schemas(
            [(model.__name__, "validation", TypeAdapter(model)) for model in some],
            ref_template=ref,
            schema_generator=generator,
        )
        found |= schemas.get("$defs", {})
    return with_bounds(found)


def with_bounds(described: Any) -> Any:
    """Rename a schema's bounds to JSON Schema's words. Where a text is read first, pydantic leaves its own words.

    A pattern that all keys match becomes `propertyNames`: `patternProperties` alone lets other keys through.
    """
    if isinstance(described, list):
        return [with_bounds(parameter) for parameter in described]
    if not isinstance(described, dict):
        return described
    found = {_BOUNDS.get(key, key): with_bounds(value) for key, value in described.items()}
    patterns = found.get("patternProperties")
    if isinstance(patterns, dict) and len(patterns) == 1 and "properties" not in found:
        ((pattern, values),) = found.pop("patternProperties").items()
        found |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
    return found


def query_parameters(view: Any) -> list[dict[str, Any]]:
    """Describe the parameters that a view takes, from its `query_model`."""
    model: type[BaseModel] | None = getattr(view, "query_model", None)
    if model is None:
        return []
    # What a value means, not the text that it is sent as: only so the document has its bounds and its words.
    schema = model.model_json_schema(mode="serialization")
    needed = {field.alias or name for name, field in model.model_fields.items() if field.is_required()}
    found = []
    for name, described in schema.get("properties", {}).items():
        kept = {key: value for key, value in _without_null(described).items() if key not in {"title", "description"}}
        kept = with_bounds(kept)
        parameter: dict[str, Any] = {"name": name, "in": "query", "required": name in needed, "schema": kept}
        if text := described.get("description"):
            parameter["description"] = text
        if kept.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        if name == LABELS:  # each member is a separate parameter
            names = {"pattern": f"^{re.escape(LABEL)}{kept['propertyNames']['pattern'].removeprefix('^')}"}
            shape = {"type": "object", "propertyNames": names, "additionalProperties": kept["additionalProperties"]}
            parameter |= {"style": "form", "explode": True, "schema": shape}
        found.append(parameter)
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """`X | None = None` in a model means that the parameter may be absent; `null` cannot be sent in a query."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    kept = {key: value for key, value in schema.items() if key not in {"anyOf", "default"} or value is not None}
    if len(options) == 1:
        kept.pop("anyOf")
        kept |= options[0]
    elif options:
        kept["anyOf"] = options
    return kept
