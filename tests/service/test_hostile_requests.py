"""Every operation under values that nobody means: refused as a problem that points at its place, and never a 5xx.

The operations and their parameters come from the document, so that a new one is not forgotten; the values are a table.
`make contract` sends all of them; every run of the tests one of thirteen, so that each operation has some of each kind.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from service.api.webhooks import deliveries

WHOLE = bool(os.environ.get("BACKPROBE_CONTRACT_EXAMPLES"))
DOCUMENT = json.loads(Path(__file__).parents[2].joinpath("docs/reference/openapi.json").read_text())
OPERATIONS = [
    (method.upper(), path, item[method])
    for path, item in DOCUMENT["paths"].items()
    for method in ("get", "post", "put", "patch", "delete")
    if method in item
]
TEXTS = (
    "", " ", "\0", "a\0b", "\ufeff", "\u202e", "\u0660", "\uffff", "\U0010ffff", "%", "%00", "'", '"', "\\", "';--",
    "../../etc/passwd", "*" * 300, "[" * 200, "x" * 5000, "-1", "-0", "+1", "1.0", "1e3", "1e999", "NaN", "Infinity",
    "0x10", "1_000", "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "1" * 400, "true", "null", "{}", "[]", ",", ",,", "a,", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-23:59", "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z",
    "2026-11-22T00:00:60Z", "2026-11-22T00:00:00+99:99", "after-backward:99999999999999999999", "end:-1",
    "run_" + "0" * 26, "run_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "run_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "call:999999999", "tensor:-1",
)  # fmt: skip
RAW = ("%FF", "%C0%80", "%ED%A0%80", "%F4%90%80%80", "%E2%82", "%", "%zz", "%u0041")
"""As bytes of an address: no UTF-8, overlong NUL, half a surrogate, beyond Unicode, cut off, no escapes."""

HEADERS = {
    "Prefer": ("wait", "wait=", "wait=-1", "wait=1e9", "wait=99999999999999999999", "wait=\xe9", "x" * 5000, "wait=0, wait=1"),
    "If-Match": ("", "x", '"', '"1', "W/", "*, *", '"' + "1" * 5000 + '"', "\xe9", '"9223372036854775808"'),
    "If-None-Match": ("", "x", '"', "W/", "*, *", '"' + "1" * 5000 + '"', "\xe9"),
    "Idempotency-Key": ("", " ", "\xe9", "x" * 256, "x" * 5000, "a,b", '"', "\x7f"),
    "Last-Event-ID": ("-1", "x", "9" * 30, "9223372036854775808", "1.5", "\xe9", ""),
    "Range": ("bytes", "bytes=", "bytes=-", "bytes=5-1", "bytes=-0", "bytes=99999999999999999999-", "bytes=0-0,2-3", "x=1-2", "bytes=a-b"),
    "Accept": ("", "x", "text/", "/json", "*/*;q=2", "*/*;q=x", "application/json;q=0", ", ".join(["a/b"] * 900), "\xe9/\xe9"),
    "traceparent": ("", "00", "ff-" + "1" * 32 + "-" + "1" * 16 + "-01", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "\xe9"),
    "X-Request-Id": ("", "a", "\xe9" * 9, "x" * 65, "a b c d e f"),
    "Authorization": ("", "Bearer", "Bearer ", "Basic", "Basic x", "Basic " + "A" * 5000, "Digest x", "Bearer \xe9", "bp_" * 400),
    "Content-Type": ("", "x", "application/json; charset=utf-16", "application/json; charset=\xe9", "text/plain", "multipart/form-data; boundary=x", "application/json;;;", "application/x-ndjson"),
    "Content-Encoding": ("gzip", "br", "identity", "x" * 3000),
    "Cookie": ("x" * 5000, "session=\xe9", "=;=;", "__Host-backprobe=x"),
    "Host": ("", "a b", "[::1", "localhost:x", "localhost:99999999", "x@localhost", "evil.example"),
    "Origin": ("null", "http://[", "http://evil.example", "\xe9"),
    "Forwarded": ("for=\xe9",),
}  # fmt: skip
BODIES = (
    b"", b" ", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), "{}".encode("utf-32"), b'{"source": "\xc0\x80"}', b'{"source": "\xed\xa0\x80"}',
    b'{"source": "\\ud800"}', b'{"source": "\\u0000"}', b'{"\\ud800": 1}', b'{"source": "x", "source": "x"}', b"{" * 50_000,
    b'{"seed": 1e400}', b'{"seed": ' + b"9" * 4000 + b"}", b'{"seed": -0}', b'{"priority": 1E1}', b"NaN", b"\0", b"{}\0", b"null", b"[]",
    b'"' + b"x" * 100_000 + b'"', gzip.compress(b'{"source": "x = 1"}'), gzip.compress(b"0" * 50_000_000),
    b'{"labels": {"' + b"k" * 70_000 + b'": "x"}}', b'{"__proto__": {}, "constructor": 1}', b'{"": ""}', b"1e5", b"{,}", b"//x\n{}",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(both, samples):
    """An application with something of each kind in it, and the address of each operation."""
    site = both
    known = {"no": "0", "node": "0", "call": "0", "path": "snippet.py", "name": "BP101"}
    known["run"] = site.finished(samples.tutorial(nan=True))
    for path, field, body in (
        ("projects", "project", {"name": "p"}), ("policies", "policy", {"name": "p", "deny": ["BP101"]}), ("keys", "key", {"name": "k", "scopes": ["read"]}),
        ("webhooks", "webhook", {"url": "https://receiver.example/x", "events": ["run.ended"]}), ("audits", "audit", {"items": [{"custom_id": "a", "source": "x = 1"}]}),
        ("snippets", "snippet", {"source": "x = 1\n"}),
    ):  # fmt: skip
        answer = site.client.post(f"/v1/{path}", json=body)
        known[field] = answer.json.get("id", "x") if answer.status_code < 300 else "x"
    for path, field in (("findings", "finding"), ("finding-groups", "group"), ("deliveries", "delivery")):
        items = (site.client.get(f"/v1/{path}").json or {}).get("items", [])
        known[field] = items[0]["id"] if items else "x"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "TEST_SECONDS", 0.0)  # nothing sends here: each test call would wait for it
        yield site, known


def address(path, known):
    for name in [part.partition("}")[0] for part in path.split("{")[1:]]:
        path = path.replace("{" + name + "}", known.get(name, known.get(name.split("_")[0], "x")))
    return path


def looked_at(answer, about):
    """A 5xx never, but a seat or a queue that is full; a refusal is a problem, and one of the request is pointed at."""
    assert answer.status_code < 500, (about, answer.status_code, answer.text[:300])
    if answer.status_code < 400:
        return
    assert answer.headers["Content-Type"] == "application/problem+json", (about, answer.text[:300])
    problem = answer.get_json(force=True)
    assert problem["status"] == answer.status_code
    assert problem["detail"], about
    if problem["code"] == "invalid-request":
        assert problem["errors"], (about, problem)
    for place in problem["errors"]:
        assert {"pointer", "parameter", "header"} & set(place), (about, place)
    assert "Traceback" not in answer.text


_turn = itertools.count()


def ask(site, method, path, about, **more):
    """Send it, if it is its turn, and look at the answer."""
    if WHOLE or next(_turn) % 13 == 0:
        looked_at(site.client.open(path, method=method, **more), (method, *about))


def test_every_parameter_of_every_read_takes_hostile_values(world):
    site, known = world
    for method, path, said in OPERATIONS:
        if method != "GET":
            continue
        for parameter in said.get("parameters", ()):
            if parameter["in"] != "query":
                continue
            name = parameter["name"].replace("<k>", "k")
            for value in TEXTS:
                ask(site, method, address(path, known), (path, name, value), query_string={name: value})
            for value in RAW:
                ask(site, method, f"{address(path, known)}?{name}={value}", (path, name, value))


def test_every_id_of_every_address_takes_hostile_values(world):
    site, known = world
    for method, path, said in OPERATIONS:
        for parameter in said.get("parameters", ()):
            if parameter["in"] != "path":
                continue
            name = parameter["name"]
            for value in (*TEXTS, *RAW):
                if value in {"", ".", ".."} or "/" in value or "?" in value:
                    continue
                sent = value if value in RAW else quote(value, safe="")
                there = address(path.replace("{" + name + "}", "@@"), known).replace("@@", sent)
                body = {"json": {}} if method in {"POST", "PUT", "PATCH"} else {}
                ask(site, method, there, (path, name, value), **body)


def test_every_header_of_every_operation_takes_hostile_values(world):
    site, known = world
    for method, path, _said in OPERATIONS:
        if method == "DELETE":
            continue
        body = {"data": b"{}", "content_type": "application/json"} if method in {"POST", "PUT", "PATCH"} else {}
        for name, values in HEADERS.items():
            for value in values:
                if name == "Accept" and path.endswith("/events"):
                    continue
                more = dict(body)
                if name == "Content-Type":
                    more.pop("content_type", None)
                ask(site, method, address(path, known), (path, name, value), headers={name: value}, **more)


def test_every_body_of_every_write_takes_hostile_bytes(world):
    site, known = world
    for method, path, said in OPERATIONS:
        if "requestBody" not in said:
            continue
        for media in said["requestBody"]["content"]:
            for body, packed in itertools.product(BODIES, ({}, {"Content-Encoding": "gzip"})):
                about = (path, media, packed, body[:60])
                ask(site, method, address(path, known), about, data=body, content_type=media, headers=packed)


def test_a_cursor_with_any_bit_changed_is_refused_by_every_list(world):
    site, known = world
    lists = [
        path
        for method, path, said in OPERATIONS
        if method == "GET" and any(parameter["name"] == "cursor" for parameter in said.get("parameters", ()))
    ]
    assert len(lists) > 15
    cursors = {}
    for path in lists:
        for _ in range(2):
            if path == "/v1/runs":
                site.submit()
        first = site.client.get(f"{address(path, known)}?limit=1")
        if first.status_code == 200 and first.json.get("next_cursor"):
            cursors[path] = first.json["next_cursor"]
    assert len(cursors) > 8
    for path, cursor in cursors.items():
        there = address(path, known)
        assert site.client.get(there, query_string={"limit": 1, "cursor": cursor}).status_code == 200
        raw = bytearray(cursor.encode())
        for at in range(0, len(raw), 1 if WHOLE else 7):
            for bit in (1, 4, 32):
                changed = bytearray(raw)
                changed[at] ^= bit
                text = changed.decode("latin-1")
                answer = site.client.get(there, query_string={"limit": 1, "cursor": text})
                assert answer.status_code == 422, (path, cursor, text, answer.text)
                assert answer.json["errors"][0]["parameter"] == "cursor"
        for other in cursors.values():
            if other != cursor:
                assert site.client.get(there, query_string={"limit": 1, "cursor": other}).status_code == 422
