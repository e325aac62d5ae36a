"""The OpenAPI document against that of the last release: within v1 only additions.

usage: python -m docs.compatibility [--release]

Prints what a client of the last release could stumble over, and exits 1 if there is something. `--release` stores the
document of today in its place, without its texts: a step of every release.

What is sent may be refused no sooner than before, and what comes back has all that was in it. So one relation is held
both ways: a schema `takes` another if it allows every value of the other. Of a body today's takes yesterday's,
of an answer yesterday's takes today's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

REFERENCE: Final = Path(__file__).parent / "reference"
TODAY, RELEASED = REFERENCE / "openapi.json", REFERENCE / "openapi-released.json"
OPEN: Final = frozenset({"kind", "code", "verdict", "why_none", "type", "event", "events", "family", "origin"})
"""Fields of answers whose words may become more; `status`, `level`, `confidence` and the rest are closed.
ADR 38 says who meets another `origin`."""

_TEXTS: Final = {"description", "summary", "title", "examples", "example", "links", "tags"}
_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_DEEPEST: Final = 24

Schema = dict[str, Any]


def untold(value: Any, *, names: bool = False) -> Any:
    """The document without its texts; `names`: the keys are names of fields, which may be called `title`."""
    if isinstance(value, list):
        return [untold(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {"properties", "schemas", "parameters"}
    return {
        key: untold(inner, names=key in named)
        for key, inner in value.items()
        if names or key not in _TEXTS or not isinstance(inner, str | list | dict)
    }


class Taking:
    """Whether schemas of one document take all that those of another do.

    Args:
        wide, narrow: The documents: `wide` is to take what `narrow` says.
        answer: They are of answers: a reader skips fields that it does not know, and some lists of words grow.
    """

    def __init__(self, wide: Schema, narrow: Schema, *, answer: bool) -> None:
        self._wide, self._narrow, self._answer = wide, narrow, answer

    def faults(self, wide: Schema, narrow: Schema, at: str, depth: int = 0) -> Iterator[str]:
        """What `narrow` allows and `wide` refuses, each with its place."""
        wide, narrow = _resolved(self._wide, wide), _resolved(self._narrow, narrow)
        if depth > _DEEPEST or not wide:
            return
        for option in _options(narrow):
            against = [list(self._of_one(other, option, at, depth)) for other in _options(wide)]
            if all(against):
                yield from min(against, key=len)

    def _of_one(self, wide: Schema, narrow: Schema, at: str, depth: int) -> Iterator[str]:
        wide, narrow = _resolved(self._wide, wide), _resolved(self._narrow, narrow)
        yield from self._words(wide, narrow, at)
        for key in _LEAST:
            if key in wide and narrow.get(key, float("-inf")) < wide[key]:
                yield f"{at}: {key} {narrow.get(key)} and {wide[key]}"
        for key in _MOST:
            if key in wide and narrow.get(key, float("inf")) > wide[key]:
                yield f"{at}: {key} {narrow.get(key)} and {wide[key]}"
        for key in ("pattern", "format"):
            if key in wide and narrow.get(key) != wide[key]:
                yield f"{at}: {key} {narrow.get(key)} and {wide[key]}"
        yield from self._members(wide, narrow, at, depth)
        if isinstance(wide.get("items"), dict):
            yield from self.faults(wide["items"], narrow.get("items", {}), f"{at}/*", depth + 1)

    def _words(self, wide: Schema, narrow: Schema, at: str) -> Iterator[str]:
        types, others = _types(wide), _types(narrow)
        if types and not others <= types and not (others <= {"integer"} and "number" in types):
            yield f"{at}: type {sorted(others) or 'any'} and {sorted(types)}"
        mine, theirs = _values(wide), _values(narrow) or {"anything"}
        if mine and not (self._answer and at.rsplit("/", 1)[-1] in OPEN):
            more = sorted(theirs - mine)
            if more:
                yield f"{at}: also {', '.join(more)}"

    def _members(self, wide: Schema, narrow: Schema, at: str, depth: int) -> Iterator[str]:
        for name in sorted(set(wide.get("required", ())) - set(narrow.get("required", ()))):
            yield f"{at}/{name}: is needed, and may be absent"
        known, mine = wide.get("properties", {}), narrow.get("properties", {})
        more = wide.get("additionalProperties", True)
        for name, inner in mine.items():
            if name in known:
                yield from self.faults(known[name], inner, f"{at}/{name}", depth + 1)
            elif more is False and not self._answer:
                yield f"{at}/{name}: is not taken"
        if self._answer:
            yield from (f"{at}/{name}: is gone" for name in sorted(set(known) - set(mine)))
        names = wide.get("propertyNames")
        if names and more is not False:
            yield from self.faults(names, narrow.get("propertyNames", {}), f"{at}/{{names}}", depth + 1)
        if isinstance(more, dict):
            given = narrow.get("additionalProperties", True)
            yield from self.faults(more, given if isinstance(given, dict) else {}, f"{at}/{{any}}", depth + 1)


def _resolved(document: Schema, schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def _options(schema: Schema) -> list[Schema]:
    """What a value may be, one by one: each option with all that holds for every one of them."""
    rest = {key: value for key, value in schema.items() if key not in {"anyOf", "oneOf"}}
    return [_both(rest, option) for option in schema.get("anyOf") or schema.get("oneOf") or [{}]]


def _both(schema: Schema, more: Schema) -> Schema:
    """A schema that says what two say; where both name a field, it says both of it."""
    found = {**schema, **more}
    if "properties" in schema and "properties" in more:
        fields = {name: _both(schema["properties"].get(name, {}), told) for name, told in more["properties"].items()}
        found["properties"] = schema["properties"] | fields
    if "items" in schema and "items" in more:
        found["items"] = _both(schema["items"], more["items"])
    if "required" in schema or "required" in more:
        found["required"] = [*schema.get("required", ()), *more.get("required", ())]
    return found


def _types(schema: Schema) -> set[str]:
    told = schema.get("type", [])
    return {told} if isinstance(told, str) else set(told)


def _values(schema: Schema) -> set[str]:
    """Return the only values that a schema takes, as text; empty: it names none."""
    return set(map(str, schema.get("enum", [schema["const"]] if "const" in schema else [])))


def _operations(document: Schema) -> dict[str, Schema]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def broken(released: Schema, today: Schema) -> list[str]:
    """What a client of the released document could stumble over."""
    was, now = _operations(released), _operations(today)
    found = [f"{name}: is gone" for name in sorted(set(was) - set(now))]
    asked = Taking(today, released, answer=False)
    told = Taking(released, today, answer=True)
    for name in sorted(set(was) & set(now)):
        if was[name]["operationId"] != now[name]["operationId"]:
            found.append(f"{name}: operationId {was[name]['operationId']} is now {now[name]['operationId']}")
        found += _parameters(asked, was[name], now[name], name)
        found += _bodies(asked, was[name], now[name], name)
        found += _answers(told, was[name], now[name], name)
    return found


def _parameters(asked: Taking, was: Schema, now: Schema, name: str) -> Iterator[str]:
    before = {(parameter["in"], parameter["name"]): parameter for parameter in was.get("parameters", ())}
    after = {(parameter["in"], parameter["name"]): parameter for parameter in now.get("parameters", ())}
    for key in sorted(before | after):
        at = f"{name} {key[1]}"
        if key not in after:
            yield f"{at}: the parameter is gone"
        elif after[key].get("required") and not before.get(key, {}).get("required"):
            yield f"{at}: the parameter is needed now"
        elif key in before:
            yield from asked.faults(after[key]["schema"], before[key]["schema"], at)
            defaults = before[key]["schema"].get("default"), after[key]["schema"].get("default")
            if defaults[0] != defaults[1]:
                yield f"{at}: its default was {defaults[0]}, and is {defaults[1]}"


def _bodies(asked: Taking, was: Schema, now: Schema, name: str) -> Iterator[str]:
    before, after = was.get("requestBody"), now.get("requestBody")
    if after is not None and after.get("required") and (before is None or not before.get("required")):
        yield f"{name}: a body is needed now"
    if before is None:
        return
    for media, content in before["content"].items():
        if after is None or media not in after["content"]:
            yield f"{name}: a body of {media} is not taken"
        else:
            yield from asked.faults(after["content"][media]["schema"], content["schema"], f"{name} body")


def _answers(told: Taking, was: Schema, now: Schema, name: str) -> Iterator[str]:
    for status, before in was["responses"].items():
        if status >= "300":
            continue
        after = now["responses"].get(status)
        if after is None:
            yield f"{name}: does not answer {status}"
            continue
        for header in sorted(set(before.get("headers", ())) - set(after.get("headers", ()))):
            yield f"{name} {status}: the header {header} is gone"
        for media, content in before.get("content", {}).items():
            if media not in after.get("content", {}):
                yield f"{name} {status}: {media} is gone"
            else:
                yield from told.faults(content["schema"], after["content"][media]["schema"], f"{name} {status}")


def main() -> int:
    """Compare, or store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", action="store_true", help="store today's document as that of the last release")
    today = untold(json.loads(TODAY.read_text()))
    if parser.parse_args().release:
        RELEASED.write_text(json.dumps(today, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        return 0
    found = broken(json.loads(RELEASED.read_text()), today)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
