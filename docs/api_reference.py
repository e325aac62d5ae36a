"""`docs/api`: the REST API by resource, from the OpenAPI document, each operation with curl and Python.

What is new in the document stands here by itself. A test sends every example, page by page, to a running service.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Final

ORDER: Final = ("post", "get", "put", "patch", "delete")
VARIABLES: Final = {
    "no": "0",
    "n": "0",
    "call": "0",
    "node": "0",
    "table": "moments",
    "name": "BP101",
    "path": "train.py",
}
"""Path parameters that are the same everywhere; all others are ids, and variables of the shell and of Python."""

ALIASES: Final = {"key": "key_id"}
"""Ids whose variable has another name: `$KEY` is the key that a request carries."""

RUNS: Final = {"begin_run": "watched", "send_frame": "watched", "end_run": "watched", "compare_ranks": "rank"}
"""Operations that only some runs have: those of a recorder, which chose the id, and a rank of a job."""

FILES: Final = {"send_frame": "frame.bin"}
"""What is sent in place of the file of a whole record."""

SHOWN: Final = {"compare_runs": {"a": "$RUN", "b": "$OTHER"}}
"""Query parameters without which an operation says nothing."""

_MODELS: Final = """\
What answers and bodies are made of. Fields are never absent from an answer: null says that it is not known, or does not
apply."""

Schema = dict[str, Any]


def slug(tag: str) -> str:
    """The page of a tag."""
    return re.sub(r"\W+", "-", tag.lower())


def by_tag(document: Schema) -> dict[str, list[tuple[str, str, Schema]]]:
    """Path, method and operation of each tag; what makes comes first, what removes last."""
    found: dict[str, list[tuple[str, str, Schema]]] = {}
    for path, item in sorted(document["paths"].items()):
        for method, operation in item.items():
            found.setdefault(operation["tags"][0], []).append((path, method, operation))
    for operations in found.values():
        operations.sort(
            key=lambda row: (
                row[1] == "delete",
                row[2]["operationId"] == "end_run",
                row[0].replace("/", " "),
                ORDER.index(row[1]),
            )
        )
    return found


def page(document: Schema, tag: str, notice: str) -> str:
    """The page of one tag."""
    parts = [
        f"# {tag}\n\n{notice}\n",
        "[The API](README.md); how to begin stands there, and what `$API` and `$KEY` are.",
    ]
    for path, method, operation in by_tag(document)[tag]:
        parts += ["", f"## {method.upper()} {path}", "", operation["summary"]]
        if operation.get("description"):
            parts += ["", operation["description"]]
        scope = next((next(iter(requirement.values())) for requirement in operation["security"] if requirement), [])
        parts += ["", f"Scope: {', '.join(f'`{name}`' for name in scope) or 'none'}."]
        parts += _parameters(operation) + _body(document, operation) + _answers(operation)
        parts += [
            "",
            "```sh",
            curl(path, method, operation),
            "```",
            "",
            "```python",
            python(path, method, operation),
            "```",
        ]
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()


def kind(schema: Schema) -> str:
    """A type for people: `integer, 1 to 1000`, `any of: cpu, cuda`."""
    if "$ref" in schema:
        return f"[{schema['$ref'].rsplit('/', 1)[1]}](models.md#{schema['$ref'].rsplit('/', 1)[1].lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(option) for option in schema["anyOf"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    told = str(schema.get("type", "any"))
    if told == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if told == "object":
        values = schema.get("additionalProperties")
        return f"object of {kind(values)}" if isinstance(values, dict) else "object"
    low, high = (
        schema.get(name, schema.get(other)) for name, other in (("minimum", "minLength"), ("maximum", "maxLength"))
    )
    unit = " characters" if told == "string" else ""
    if low is not None and high is not None:
        return f"{told}, {low} to {high}{unit}"
    if high is not None:
        return f"{told}, at most {high}{unit}"
    return f"{told}, {schema['format']}" if "format" in schema else told


def _parameter_row(parameter: Schema) -> str:
    needed = ", needed" if parameter.get("required") and parameter["in"] != "path" else ""
    text = _cell(parameter.get("description", ""))
    return f"| `{parameter['name']}` | {parameter['in']}{needed} | {_cell(kind(parameter['schema']))} | {text} |"


def _parameters(operation: Schema) -> list[str]:
    rows = [_parameter_row(parameter) for parameter in operation["parameters"]]
    return ["", "| parameter | in | is | |", "|---|---|---|---|", *rows] if rows else []


def _body(document: Schema, operation: Schema) -> list[str]:
    found = operation.get("requestBody")
    if found is None:
        return []
    content = found["content"].get("application/json")
    if content is None:
        return ["", f"Body: {', '.join(f'`{media}`' for media in found['content'])}."]
    name = content["schema"]["$ref"].rsplit("/", 1)[1]
    rows = fields(document["components"]["schemas"][name])
    others = [media for media in found["content"] if media != "application/json"]
    about = document["components"]["schemas"][name].get("description", "")
    parts = ["", f"Body{'' if found.get('required') else ', which may be left out'}: {about}"]
    parts += ["", "| field | is | |", "|---|---|---|", *rows] if rows else []
    return parts + (["", f"Also as {', '.join(f'`{media}`' for media in others)}."] if others else [])


def fields(schema: Schema) -> list[str]:
    """Rows of a table: the fields of an object."""
    needed = set(schema.get("required", ()))
    rows = []
    for name, told in schema.get("properties", {}).items():
        default = told.get("default")
        after = "" if default in (None, [], {}) else f" Default: `{json.dumps(default)}`."
        mark = ", needed" if name in needed and "additionalProperties" in schema else ""
        rows.append(f"| `{name}` | {_cell(kind(told))}{mark} | {_cell(told.get('description', '') + after)} |")
    return rows


def _answers(operation: Schema) -> list[str]:
    rows = []
    for status, told in sorted(operation["responses"].items()):
        content = told.get("content", {})
        if status >= "400" and "application/problem+json" in content:
            codes = ", ".join(f"`{code}`" for code in told["description"].split(", "))
            rows.append(f"| {status} | {codes} |")
            continue
        kinds = [
            kind(body["schema"]) if media == "application/json" else f"`{media}`" for media, body in content.items()
        ]
        rows.append(f"| {status} | {_cell(told['description'])} {', '.join(kinds)} |")
    return ["", "| answer | |", "|---|---|", *rows]


def models(document: Schema, notice: str) -> str:
    """Every model of an answer or a body with its fields."""
    parts = [f"# Models\n\n{notice}\n", _MODELS]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += ["", f"## {name}"]
        if schema.get("description"):
            parts += ["", schema["description"].replace("\n", "  \n")]
        rows = fields(schema)
        parts += ["", "| field | is | |", "|---|---|---|", *rows] if rows else []
    return "\n".join(parts) + "\n"


def variable(name: str) -> str:
    """A path parameter in the shell: what it is everywhere, or its variable."""
    return VARIABLES.get(name, f"${ALIASES.get(name, name).upper()}")


def body_of(operation: Schema) -> Any:
    """The first body that the document shows; None: it shows none."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return next((example["value"] for example in content.get("examples", {}).values()), None)


def needs_match(operation: Schema) -> bool:
    """It is refused without If-Match."""
    return "428" in operation["responses"]


def curl(path: str, method: str, operation: Schema) -> str:
    """The operation as a command."""
    path = path.replace("{run}", f"{{{RUNS.get(operation['operationId'], 'run')}}}")
    at = re.sub(r"{(\w+)}", lambda found: variable(found[1]), path)
    asked = "&".join(f"{name}={value}" for name, value in SHOWN.get(operation["operationId"], {}).items())
    words = ['curl -sS --fail-with-body -H "Authorization: Bearer $KEY"']
    words += [f"-X {method.upper()}"] if method != "get" else []
    words += ["-H 'If-Match: *'"] if needs_match(operation) else []
    words += [f'"$API{at}{"?" + asked if asked else ""}"']
    body = body_of(operation)
    if body is not None:
        words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}"]
    elif operation.get("requestBody", {}).get("required"):
        media = next(iter(operation["requestBody"]["content"]))
        words += [f"-H 'Content-Type: {media}'", f"--data-binary @{FILES.get(operation['operationId'], 'run.bprec')}"]
    return " \\\n  ".join(words)


def python(path: str, method: str, operation: Schema) -> str:
    """The operation by `backprobe.client`."""
    path = path.replace("{run}", f"{{{RUNS.get(operation['operationId'], 'run')}}}")
    names = [name for name in re.findall(r"{(\w+)}", path) if name not in VARIABLES]
    at = re.sub(r"{(\w+)}", lambda found: VARIABLES.get(found[1], f"{{{ALIASES.get(found[1], found[1])}}}"), path)
    words = [f'"{method.upper()}"', f'{"f" if names else ""}"{at}"']
    words += ['headers={"If-Match": "*"}'] if needs_match(operation) else []
    body = body_of(operation)
    if body is None and operation.get("requestBody", {}).get("required"):
        media = next(iter(operation["requestBody"]["content"]))
        file = FILES.get(operation["operationId"], "run.bprec")
        words += [f'body=Path("{file}").read_bytes(), headers={{"Content-Type": "{media}"}}']
    if body is not None:
        words += [f"body={body!r}"]
    words += [
        f"{name}={value.removeprefix('$').lower()}" for name, value in SHOWN.get(operation["operationId"], {}).items()
    ]
    return f"service.call({', '.join(words)})"
