"""The pages below `/docs/api`: every operation and schema of the OpenAPI document, each with its anchor.

`/docs/api` lists them; a page holds the operations of one section, or schemas in order of the alphabet, as many as a
browser draws at once. What is more goes on a second page of the section.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flask import current_app, render_template

from service.dashboard.pages import blueprint
from service.openapi.document import document
from service.problems.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

METHODS: Final = ("get", "post", "put", "patch", "delete")
MOST_WEIGHT: Final = 1_200
"""Elements of a page, about: 1,500 is the budget of a page, and its frame has a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter or a member: what it is, in words. schema: the schema that it refers to, "" for none."""

    name: str
    where: str
    kind: str
    schema: str
    is_required: bool
    text: str

    @property
    def weight(self) -> int:
        """About how many elements it is drawn with."""
        return 6 + self.text.count("`") // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An answer of an operation. media: what it may be made of. schema: of its JSON, "" for none."""

    status: str
    text: str
    media: tuple[str, ...]
    schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationShown:
    """One operation.

    Attributes:
        body: The schema of its body, "" for none. example: a body, as JSON.
        outcomes: Its answers but for errors. errors: (status, text) of each; all are of the schema `problem`.
    """

    id: str
    method: str
    path: str
    summary: str
    text: str
    fields: tuple[Field, ...]
    body: str
    example: str
    outcomes: tuple[Outcome, ...]
    errors: tuple[tuple[str, str], ...]
    problem: str

    @property
    def weight(self) -> int:
        """About how many elements it is drawn with."""
        return 20 + 4 * len(self.outcomes) + sum(field.weight for field in self.fields) + self.text.count("`") // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaShown:
    """One schema with its members."""

    name: str
    text: str
    fields: tuple[Field, ...]

    @property
    def weight(self) -> int:
        """About how many elements it is drawn with."""
        return 16 + sum(field.weight for field in self.fields) + self.text.count("`") // 2


Item = TypeVar("Item", OperationShown, SchemaShown)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPage:
    """One page: operations or schemas. slug: the end of its address. title: of its section, which may have others."""

    slug: str
    title: str
    operations: tuple[OperationShown, ...] = ()
    schemas: tuple[SchemaShown, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """All pages in order. schema_page: the slug of each schema's page, by its name."""

    pages: tuple[SectionPage, ...]
    schema_page: Mapping[str, str]
    version: str


@blueprint.get("/docs/api")
def api_reference() -> str:
    """Show the list of everything that the API has."""
    return render_template("reference.html", reference=_reference())


@blueprint.get("/docs/api/<slug>")
def api_reference_page(slug: str) -> str:
    """One page of the reference."""
    found = _reference()
    page = next((page for page in found.pages if page.slug == slug), None)
    if page is None:
        raise Problem("not-found", f"The reference of the API has no page {slug[:40]}. /docs/api lists all.")
    return render_template("reference_section.html", reference=found, page=page)


@cache
def _reference() -> Reference:
    """Read the document once: it is the same as long as the process lives."""
    told = document(current_app)
    tags: dict[str, list[OperationShown]] = {tag["name"]: [] for tag in told["tags"]}
    for path, methods in told["paths"].items():
        for method in METHODS:
            if method in methods:
                tags[methods[method]["tags"][0]].append(_operation(method, path, methods[method]))
    schemas = [_schema(name, schema) for name, schema in sorted(told["components"]["schemas"].items())]
    pages = [
        SectionPage(slug=slug, title=tag, operations=operations)
        for tag, listed in tags.items()
        for slug, operations in _cut_into_pages(tag, listed)
    ]
    of_schemas = [
        SectionPage(slug=slug, title="Schemas", schemas=part) for slug, part in _cut_into_pages("Schemas", schemas)
    ]
    return Reference(
        pages=(*pages, *of_schemas),
        schema_page={schema.name: page.slug for page in of_schemas for schema in page.schemas},
        version=told["info"]["version"],
    )


def _cut_into_pages(title: str, items: Sequence[Item]) -> list[tuple[str, tuple[Item, ...]]]:
    """Cut a section into pages that are not too heavy: (slug, items) of each."""
    pages: list[list[Item]] = []
    room = 0
    for item in items:
        if item.weight > room:
            pages.append([])
            room = MOST_WEIGHT
        pages[-1].append(item)
        room -= item.weight
    slug = title.lower().replace(" ", "-")
    return [(slug if at == 0 else f"{slug}-{at + 1}", tuple(page)) for at, page in enumerate(pages)]


def _schema(name: str, schema: Mapping[str, Any]) -> SchemaShown:
    return SchemaShown(
        name=name,
        text=_text_of(schema),
        fields=tuple(
            _field(member, "", value, required=member in schema.get("required", ()))
            for member, value in schema.get("properties", {}).items()
        ),
    )


def _operation(method: str, path: str, told: Mapping[str, Any]) -> OperationShown:
    content = told.get("requestBody", {}).get("content", {})
    body = next(iter(content.values()), {})
    outcomes = [_outcome(status, answer) for status, answer in told["responses"].items()]
    errors = [outcome for outcome in outcomes if outcome.status[0] in "45"]
    examples = [example["value"] for example in body.get("examples", {}).values()]
    return OperationShown(
        id=told["operationId"],
        method=method.upper(),
        path=path,
        summary=told.get("summary", ""),
        text=_text_of(told),
        fields=tuple(
            _field(
                given["name"],
                given["in"],
                {"description": given.get("description", ""), **given.get("schema", {})},
                required=given.get("required", False),
            )
            for given in told.get("parameters", ())
        ),
        body=_reference_of(body.get("schema", {})),
        example=json.dumps(examples[0], indent=2) if examples else "",
        outcomes=tuple(outcome for outcome in outcomes if outcome not in errors),
        errors=tuple((error.status, error.text) for error in errors),
        problem=next((error.schema for error in errors if error.schema), ""),
    )


def _outcome(status: str, told: Mapping[str, Any]) -> Outcome:
    content = told.get("content", {})
    return Outcome(
        status=status,
        text=_text_of(told),
        media=tuple(content),
        schema=next((found for media in content.values() if (found := _reference_of(media.get("schema", {})))), ""),
    )


def _field(name: str, where: str, schema: Mapping[str, Any], *, required: bool) -> Field:
    return Field(
        name=name,
        where=where,
        kind=_kind(schema),
        schema=_reference_of(schema),
        is_required=required,
        text=_text_of(schema),
    )


def _text_of(described: Mapping[str, Any]) -> str:
    """Return its description on one line."""
    return " ".join(described.get("description", "").split())


def _reference_of(schema: Mapping[str, Any]) -> str:
    """Return the name of the schema that this one is, holds or may be."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    within = [schema.get("items", {}), *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return next((found for part in within if part and (found := _reference_of(part))), "")


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type in words: `integer 1 to 100, default 10`."""
    if "$ref" in schema:
        return _reference_of(schema)
    if branches := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(branch) for branch in branches))
    if "enum" in schema:
        words = " | ".join(str(value) for value in schema["enum"])
    elif "const" in schema:
        words = json.dumps(schema["const"])
    elif schema.get("type") == "array":
        words = f"list of {_kind(schema.get('items', {}))}"
    else:
        kind = schema.get("type", "any")
        words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        words += f" {least} to {most}"
    return f"{words}, default {json.dumps(schema['default'])}" if schema.get("default") is not None else words
