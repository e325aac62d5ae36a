"""What is wrong with a request is said before anything is stored or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.served import Served

GOOD = "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\n"
DEEP = "[" * 200 + "]" * 200

BODIES: dict[str, tuple[bytes, int, str]] = {
    "an empty body": (b"", 400, "malformed-request"),
    "half a JSON": (b'{"source": "x', 400, "malformed-request"),
    "binary": (b"\x00\xff\xfe\x01", 400, "malformed-request"),
    "nested two hundred deep": (b'{"labels": ' + DEEP.encode() + b"}", 400, "malformed-request"),
    "null": (b"null", 422, "invalid-request"),
    "a list": (b"[]", 422, "invalid-request"),
    "a number that JSON cannot hold": (b'{"source": "x = 1", "seed": 1e999}', 422, "invalid-request"),
}

REQUESTS: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "nothing to run": ({}, 422, "invalid-request", "#"),
    "source and files": ({"source": GOOD, "files": [{"path": "a.py", "text": GOOD}]}, 422, "invalid-request", "#"),
    "an unknown field": ({"source": GOOD, "sauce": 1}, 422, "invalid-request", "#/sauce"),
    "source a number": ({"source": 5}, 422, "invalid-request", "#/source"),
    "an empty source": ({"source": ""}, 422, "invalid-request", "#/source"),
    "ten megabytes": ({"source": "x = 1\n" * 1_750_000}, 413, "too-large", ""),
    "a NUL in the source": ({"source": "x = 1\x00"}, 422, "syntax-error", "#/source"),
    "a bracket never closed": ({"source": "import torch\nx = torch.ones(\n"}, 422, "syntax-error", "#/source"),
    "a bad indent": ({"source": "if True:\nx = 1\n"}, 422, "syntax-error", "#/source"),
    "brackets beyond the parser": ({"source": "(" * 5000 + ")" * 5000}, 422, "syntax-error", "#/source"),
    "two files without an entry": (
        {"files": [{"path": "a.py", "text": GOOD}, {"path": "b.py", "text": GOOD}]},
        422,
        "no-entry-point",
        "#/entry",
    ),
    "an entry that is no file": (
        {"files": [{"path": "a.py", "text": GOOD}], "entry": "b.py"},
        422,
        "no-entry-point",
        "#/entry",
    ),
    "no file at all": ({"files": []}, 422, "invalid-request", "#/files"),
    "a path upwards": (
        {"files": [{"path": "../a.py", "text": GOOD}], "entry": "../a.py"},
        422,
        "invalid-request",
        "#/files/0/path",
    ),
    "an absolute path": (
        {"files": [{"path": "/a.py", "text": GOOD}], "entry": "/a.py"},
        422,
        "invalid-request",
        "#/files/0/path",
    ),
    "one path twice": (
        {"files": [{"path": "a.py", "text": GOOD}, {"path": "a.py", "text": GOOD}], "entry": "a.py"},
        422,
        "invalid-request",
        "#/files/1/path",
    ),
    "sixty-five files": (
        {"files": [{"path": f"m{n}.py", "text": "x = 1\n"} for n in range(65)], "entry": "m0.py"},
        422,
        "invalid-request",
        "#/files",
    ),
    "an unknown device": ({"source": GOOD, "device": "tpu"}, 422, "unknown-device", "#/device"),
    "wall time zero": (
        {"source": GOOD, "limits": {"wall_seconds": 0}},
        422,
        "invalid-request",
        "#/limits/wall_seconds",
    ),
    "wall time for ever": (
        {"source": GOOD, "limits": {"wall_seconds": 1e9}},
        422,
        "invalid-request",
        "#/limits/wall_seconds",
    ),
    "an unknown limit": ({"source": GOOD, "limits": {"wishes": 3}}, 422, "invalid-request", "#/limits/wishes"),
    "a limit as text": (
        {"source": GOOD, "limits": {"wall_seconds": "10"}},
        422,
        "invalid-request",
        "#/limits/wall_seconds",
    ),
    "an unknown tier": ({"source": GOOD, "capture": {"tier": "everything"}}, 422, "invalid-request", "#/capture/tier"),
    "arguments that are numbers": ({"source": GOOD, "arguments": [1]}, 422, "invalid-request", "#/arguments/0"),
    "more isolation than there is": ({"source": GOOD, "isolation": "gvisor"}, 409, "isolation-unavailable", ""),
    "an unknown level": ({"source": GOOD, "isolation": "strong"}, 422, "invalid-request", "#/isolation"),
    "priority eleven": ({"source": GOOD, "priority": 11}, 422, "invalid-request", "#/priority"),
}


def _is_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code, problem
    assert problem["status"] == status
    assert {"type", "title", "detail", "hint", "request_id"} <= set(problem)
    return problem


@pytest.mark.parametrize("what", BODIES)
def test_a_body_that_is_no_request_is_refused(stack: Served, what: str) -> None:
    body, status, code = BODIES[what]
    answer = stack.client.post("/v1/runs", content=body, headers={"content-type": "application/json"})
    _is_problem(answer, status, code)


@pytest.mark.parametrize("what", REQUESTS)
def test_a_bad_request_is_pointed_at(stack: Served, what: str) -> None:
    body, status, code, pointer = REQUESTS[what]
    problem = _is_problem(stack.submit(**body), status, code)
    if pointer:
        assert pointer in [error.get("pointer") for error in problem["errors"]], problem


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/runs/run_00000000000000000000000000", 404, "not-found"),
        ("GET", "/v1/runs/nothing", 404, "not-found"),
        ("GET", "/v1/nowhere", 404, "not-found"),
        ("DELETE", "/v1/runs", 405, "method-not-allowed"),
        ("GET", "/v1/runs?cursor=abc", 422, "bad-cursor"),
        ("GET", "/v1/runs?limit=0", 422, "invalid-request"),
        ("GET", "/v1/runs?colour=red", 422, "invalid-request"),
        ("POST", "/v1/runs/run_00000000000000000000000000/cancel", 404, "not-found"),
    ],
)
def test_a_bad_address_is_named(stack: Served, method: str, path: str, status: int, code: str) -> None:
    answer = stack.client.request(method, path)
    _is_problem(answer, status, code)
    if status == 405:
        assert answer.headers["allow"]


def test_a_body_of_another_type_is_refused(stack: Served) -> None:
    answer = stack.client.post("/v1/runs", content=GOOD, headers={"content-type": "text/plain"})
    _is_problem(answer, 415, "unsupported-media-type")


def test_nothing_that_was_refused_was_stored_or_run(stack: Served) -> None:
    before = [run["id"] for run in stack.items("/v1/runs")]
    for body, *_ in REQUESTS.values():
        stack.submit(**body)
    assert [run["id"] for run in stack.items("/v1/runs")] == before
    run = stack.run(GOOD)
    assert run["status"] == "succeeded"
