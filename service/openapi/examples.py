"""What the OpenAPI document shows beside its schemas: a body for each operation that takes one, and links.

1. Every example is sent by a test, as it stands.
2. A link says where an id of an answer leads: generators and testers walk along it. They are found, not listed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

SNIPPET: Final = """\
import torch

w = torch.ones(3, requires_grad=True) * 2
loss = (w * torch.arange(3.0)).sum()
loss.backward()
print(w.grad)
"""

BODIES: Final[dict[str, dict[str, Any]]] = {
    "submit_run": {
        "A program of one file": {"source": SNIPPET},
        "A program of two files, with a limit and a label": {
            "files": [
                {"path": "train.py", "text": "import net, torch\n\nnet.make()(torch.ones(1, 3)).sum().backward()\n"},
                {"path": "net.py", "text": "import torch\n\n\ndef make():\n    return torch.nn.Linear(3, 1)\n"},
            ],
            "entry": "train.py",
            "arguments": ["--fast"],
            "limits": {"wall_seconds": 10},
            "labels": {"pr": "12"},
        },
    },
    "begin_run": {
        "A training job": {
            "labels": {"job": "vit-large"},
            "capture": {"tier": "grad", "every": 100},
            "environment": {"torch": "2.13.0+cu130", "host": "node-7"},
        },
    },
    "end_run": {
        "A job that ran out of memory": {
            "status": "failed",
            "exit_code": 1,
            "error": {"type": "OutOfMemoryError", "message": "CUDA out of memory.", "path": "train.py", "line": 81},
        }
    },
    "rerun_run": {"The same with another seed": {"seed": 1}},
    "try_fix": {"The first fix that has edits": {}},
    "change_run": {"Kept, and labelled": {"pinned": True, "labels": {"pr": "12"}}},
    "keep_snippet": {"A program of one file": {"files": [{"path": "train.py", "text": SNIPPET}]}},
    "change_group": {"Not to be told again": {"state": "suppressed", "reason": "The program is meant to show it."}},
    "create_key": {"For an editor": {"name": "editor", "scopes": ["read", "runs:write"]}},
    "create_project": {"Records kept for a week": {"name": "trials", "keep_days": 7}},
    "change_project": {"Without heuristic findings": {"settings": {"min_confidence": "likely"}}},
    "create_policy": {"Errors fail, wasted memory warns": {"name": "gate", "fail": ["level:error"], "warn": ["BP3"]}},
    "revise_policy": {"Whatever is found fails": {"fail": ["*"]}},
    "create_audit": {"One program": {"name": "nightly", "items": [{"custom_id": "train.py", "source": SNIPPET}]}},
    "create_webhook": {
        "For runs that end": {"url": "https://hooks.example.com/backprobe", "events": ["run.ended"]},
    },
    "change_webhook": {"Switched off": {"enabled": False}},
}
"""By operation, each with its name."""

LINES: Final[dict[str, dict[str, str]]] = {
    "create_audit": {
        "Two programs, line by line": "\n".join(
            json.dumps(line)
            for line in (
                {"name": "nightly", "labels": {"commit": "9f2c1ab"}, "defaults": {"queue": "cpu"}},
                {"custom_id": "jobs/gpt.py", "source": SNIPPET},
                {"custom_id": "jobs/vit.py", "source": SNIPPET, "seed": 1},
            )
        )
        + "\n"
    },
}
"""Bodies that come as NDJSON, by operation."""

_MADE: Final = re.compile(r"(Told|Made|Full)$")
_IN_LISTS: Final = {"no": "tensor", "node": "node", "call": "call", "name": "name"}
"""Path parameters that are no ids, and the field of an item that has them."""


def complete(document: dict[str, Any]) -> None:
    """Add bodies and links to a document that has all else."""
    operations = [
        (path, method, operation) for path, item in document["paths"].items() for method, operation in item.items()
    ]
    for path, method, operation in operations:
        _add_bodies(operation)
        for status, response in operation["responses"].items():
            told = response.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref")
            if status < "300" and told is not None:
                found = _links(path, method, told.rsplit("/", 1)[1], operations)
                if found:
                    response["links"] = found


def _add_bodies(operation: dict[str, Any]) -> None:
    for media, bodies in (("application/json", BODIES), ("application/x-ndjson", LINES)):
        found = bodies.get(operation["operationId"])
        if found is not None:
            operation["requestBody"]["content"][media]["examples"] = {
                re.sub(r"\W+", "-", name).lower(): {"summary": name, "value": value} for name, value in found.items()
            }


def _parameters(operation: dict[str, Any]) -> set[str]:
    return {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}


def _links(path: str, method: str, model: str, operations: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    """Where an answer of this model leads from here: to all that its new id opens, or to an item of a list."""
    above = set(re.findall(r"{(\w+)}", path))
    found: dict[str, Any] = {}
    for other, verb, operation in operations:
        wanted = _parameters(operation)
        new = wanted - above
        if len(new) != 1 or not above <= wanted:
            continue
        name = next(iter(new))
        if method == "post" and not above and _MADE.sub("", model).lower() == name:
            value = "$response.body#/id"
        elif verb == "get" and other == f"{path}/{{{name}}}" and model.endswith("List"):
            value = f"$response.body#/items/0/{_IN_LISTS.get(name, 'id')}"
        else:
            continue
        parameters = {parent: f"$request.path.{parent}" for parent in sorted(above)} | {name: value}
        found[operation["operationId"]] = {"operationId": operation["operationId"], "parameters": parameters}
    return found
