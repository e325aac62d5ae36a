"""What a client may send is checked to the letter; a refusal points at its place and says so in one shape."""

from __future__ import annotations

import gzip
import json

import pytest

GOOD = "import torch\n"
NO_JSON = [
    ("", "the body is empty"),
    ("{", "not JSON"),
    ("{'source': 'x'}", "not JSON"),
    ('{"source": "x",}', "not JSON"),
    ('{"source": NaN}', "not JSON"),
    ('{"source": Infinity}', "not JSON"),
    ('{"source": "x"} {"source": "y"}', "not JSON"),
    ('{"source": "x", "source": "y"}', "same key twice"),
    ('{"limits": {"threads": 1, "threads": 1}, "source": "x"}', "same key twice"),
    (b"\xff\xfe{}", "not UTF-8"),
    ("[" * 33 + "]" * 33, "more than 32 deep"),
    ("[" * 100_000, "more than 32 deep"),
    ('{"a":' * 5_000 + "1" + "}" * 5_000, "more than 32 deep"),
    ('{"seed": ' + "9" * 5_000 + "}", "not JSON"),
]
REFUSED = [
    ("null", "#"),
    ("0", "#"),
    ("[]", "#"),
    ('"source"', "#"),
    ("{}", "#"),
    ({"source": GOOD, "files": [{"path": "a.py", "text": GOOD}]}, "#"),
    ({"source": GOOD, "entry": "../a.py"}, "#/entry"),
    ({"source": 5}, "#/source"),
    ({"source": None}, "#"),
    ({"source": ""}, "#/source"),
    ({"source": " \n\t\n"}, "#/source"),
    ({"source": GOOD, "sauce": 1}, "#/sauce"),
    ({"source": GOOD, "a~b/c": 1}, "#/a~0b~1c"),
    ({"source": GOOD, "limits": {"wishes": 1}}, "#/limits/wishes"),
    ({"source": GOOD, "rules": {"selected": ["BP3"]}}, "#/rules/selected"),
    ({"source": GOOD, "rules": {"select": "BP3"}}, "#/rules/select"),
    ({"source": GOOD, "rules": {"select": ["BP3", "missing-zero-gard"]}}, "#/rules/select"),
    ({"source": GOOD, "rules": {"ignore": [3]}}, "#/rules/ignore/0"),
    ({"source": GOOD, "rules": {"severity": {"BP210": "fatal"}}}, "#/rules/severity/BP210"),
    ({"source": GOOD, "rules": {"severity": {"BP999": "note"}}}, "#/rules/severity"),
    ({"source": GOOD, "rules": {"thresholds": {"vanishing-gradient.shar": 0.1}}}, "#/rules/thresholds"),
    ({"source": GOOD, "rules": {"per_file_ignores": {"tests/*": ["BP999"]}}}, "#/rules/per_file_ignores"),
    ({"source": GOOD, "rules": {"min_confidence": "sure"}}, "#/rules/min_confidence"),
    ({"source": GOOD, "limits": {"wall_seconds": "10"}}, "#/limits/wall_seconds"),
    ({"source": GOOD, "limits": {"wall_seconds": True}}, "#/limits/wall_seconds"),
    ({"source": GOOD, "limits": {"wall_seconds": 1.5}}, "#/limits/wall_seconds"),
    ({"source": GOOD, "limits": {"wall_seconds": 0}}, "#/limits/wall_seconds"),
    ({"source": GOOD, "limits": {"wall_seconds": 1e300}}, "#/limits/wall_seconds"),
    ('{"source": "x", "limits": {"wall_seconds": 1e999}}', "#/limits/wall_seconds"),
    ({"source": GOOD, "limits": []}, "#/limits"),
    ({"source": GOOD, "limits": None}, "#/limits"),
    ({"source": GOOD, "arguments": "--fast"}, "#/arguments"),
    ({"source": GOOD, "arguments": [1]}, "#/arguments/0"),
    ({"source": GOOD, "arguments": ["a\0b"]}, "#/arguments/0"),
    ({"source": GOOD, "queue": "tpu"}, "#/queue"),
    ({"source": GOOD, "device": "cuda", "queue": "cpu"}, "#/queue"),
    ({"source": GOOD, "isolation": "strong"}, "#/isolation"),
    ({"source": GOOD, "capture": {"tier": "all"}}, "#/capture/tier"),
    ({"source": GOOD, "capture": {"every": 0}}, "#/capture/every"),
    ({"source": GOOD, "capture": {"often": 1}}, "#/capture/often"),
    ({"source": GOOD, "seed": -1}, "#/seed"),
    ({"source": GOOD, "seed": 2**63}, "#/seed"),
    ({"source": GOOD, "priority": 10}, "#/priority"),
    ({"source": GOOD, "labels": {"a b": "x"}}, "#/labels/a b/[key]"),
    ({"source": GOOD, "labels": {"a": 1}}, "#/labels/a"),
    ({"source": GOOD, "labels": {"a": "x\x1b[31m"}}, "#/labels/a"),
    ('{"source": "x", "labels": {"a": "\\ud800"}}', "#/labels/a"),
    ({"source": GOOD, "labels": {str(n): "" for n in range(33)}}, "#/labels"),
    ({"source": GOOD, "device_class": ""}, "#/device_class"),
    ({"files": []}, "#/files"),
    ({"files": {}}, "#/files"),
    ({"files": [{"path": "a.py"}]}, "#/files/0/text"),
    ({"files": [{"path": "a.py", "text": GOOD, "mode": 7}]}, "#/files/0/mode"),
    ({"files": [{"path": f"m{n}.py", "text": GOOD} for n in range(65)], "entry": "m0.py"}, "#/files"),
    ({"files": [{"path": "a.py", "text": GOOD}, {"path": "a.py", "text": ""}], "entry": "a.py"}, "#/files/1/path"),
]
BAD_PATHS = [
    "", "/a.py", "../a.py", "a/../b.py", "./a.py", "a//b.py", "a/", "a\\b.py", "C:/a.py", "a\x00.py", "a\n.py",
    "a\u202e.py", " a.py", "a.py ", "x" * 201,
]  # fmt: skip


def send(site, body):
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    return site.client.post("/v1/runs", data=raw, content_type="application/json")


def problem_of(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.mimetype == "application/problem+json"
    told = answer.json
    assert told["code"] == code
    assert told["type"] == f"/problems/{code}"
    assert told["status"] == status
    assert told["request_id"] == answer.headers["X-Request-Id"]
    assert told["instance"] == "/v1/runs"
    assert told["title"]
    assert told["detail"]
    assert told["hint"]
    return told


@pytest.mark.parametrize(("body", "said"), NO_JSON, ids=[str(n) for n in range(len(NO_JSON))])
def test_what_is_no_json_object_of_ours_is_malformed(plain_site, body, said):
    told = problem_of(send(plain_site, body), 400, "malformed-request")
    assert said.lower() in told["detail"].lower()


@pytest.mark.parametrize(("body", "pointer"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_a_bad_field_is_pointed_at(plain_site, body, pointer):
    told = problem_of(send(plain_site, body), 422, "invalid-request")
    assert pointer in [place["pointer"] for place in told["errors"]]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_is_relative_printable_and_stays_inside(plain_site, path):
    body = {"files": [{"path": path, "text": GOOD}]}
    told = problem_of(send(plain_site, body), 422, "invalid-request")
    assert told["errors"][0]["pointer"] == "#/files/0/path"


@pytest.mark.parametrize("path", ["a.py", "pkg/__init__.py", "тензор.py", "a-b/c.d/e_f.py", "..a.py"])
def test_a_path_that_only_looks_odd_is_taken(plain_site, path):
    answer = send(plain_site, {"files": [{"path": path, "text": GOOD}]})
    assert answer.status_code == 202, answer.text
    assert answer.json["entry"] == path


def test_every_bad_field_is_told_at_once(plain_site):
    told = problem_of(send(plain_site, {"source": 1, "sauce": 2, "priority": 99}), 422, "invalid-request")
    assert {place["pointer"] for place in told["errors"]} == {"#/source", "#/sauce", "#/priority"}


def test_a_limit_out_of_range_names_the_least_and_the_most(plain_site):
    told = problem_of(send(plain_site, {"source": GOOD, "limits": {"cpu_seconds": 3601}}), 422, "invalid-request")
    assert "cpu_seconds takes 1 to 3600" in told["detail"]


def test_a_refusal_never_echoes_what_was_sent(plain_site):
    answer = send(plain_site, {"source": 5, "labels": {"a": "<script>secret"}, "seed": "secret"})
    assert "secret" not in answer.text


def test_an_integer_may_be_written_with_a_zero_fraction(plain_site):
    answer = send(plain_site, '{"source": "import torch", "priority": 3.0, "limits": {"wall_seconds": 10.0}}')
    assert answer.status_code == 202, answer.text
    assert answer.json["priority"] == 3
    assert answer.json["limits"]["wall_seconds"] == 10


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
def test_another_content_type_is_refused(plain_site, kind):
    answer = plain_site.client.post("/v1/runs", data=b'{"source": "x"}', content_type=kind)
    problem_of(answer, 415, "unsupported-media-type")


def test_a_charset_of_utf_8_may_be_named(plain_site):
    answer = plain_site.client.post(
        "/v1/runs", data=b'{"source": "x = 1"}', content_type="application/json; charset=UTF-8"
    )
    assert answer.status_code == 202


def test_a_body_beyond_the_cap_is_too_large(plain_site):
    problem_of(send(plain_site, {"source": "x = 1\n" * 400_000}), 413, "too-large")


def test_a_file_beyond_what_a_record_keeps_is_too_large(plain_site):
    told = problem_of(send(plain_site, {"source": "#" * (1 << 20) + "\n"}), 413, "too-large")
    assert told["errors"][0]["pointer"] == "#/source"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/runs", "application/json"),
        ("/v1/audits", "application/x-ndjson"),
        ("/v1/records", "application/vnd.backprobe.record"),
    ],
)
def test_a_packed_body_is_refused_before_it_is_read(plain_site, path, kind):
    for coding in ("gzip", "br", "deflate, gzip", "x"):
        sent = gzip.compress(b"0" * 50_000_000) if coding == "gzip" else b'{"source": "x = 1"}'
        answer = plain_site.client.post(path, data=sent, content_type=kind, headers={"Content-Encoding": coding})
        assert (answer.status_code, answer.json["code"]) == (415, "unsupported-media-type"), (coding, answer.text)
        assert answer.json["errors"][0]["header"] == "Content-Encoding"
        assert answer.headers["Accept-Encoding"] == "identity"
    sent = {"data": b'{"source": "x = 1"}', "content_type": "application/json"}
    assert plain_site.client.post("/v1/runs", headers={"Content-Encoding": "identity"}, **sent).status_code == 202


def test_a_name_as_long_as_a_body_is_not_repeated(plain_site):
    for body in ({"source": GOOD, "k" * 1_000_000: 1}, {"source": GOOD, "labels": {"k" * 1_000_000: "x"}}):
        answer = send(plain_site, body)
        told = problem_of(answer, 422, "invalid-request")
        assert told["errors"][0]["pointer"].endswith("k...") or "k.../" in told["errors"][0]["pointer"]
        assert len(answer.data) < 4_000


@pytest.mark.parametrize(
    ("body", "pointer", "meant"),
    [
        ({"sorce": "x = 1"}, "#/sorce", "source"),
        ({"source": "x = 1", "limits": {"wall_second": 3}}, "#/limits/wall_second", "wall_seconds"),
        ({"files": [{"path": "a.py", "text": "x = 1", "paht": ""}]}, "#/files/0/paht", "path"),
        ({"source": "x = 1", "files_and_more": 1}, "#/files_and_more", None),
        ({"source": "x = 1", "sourc" * 20: 1}, f"#/{'sourc' * 20}", None),
    ],
)
def test_an_unknown_member_names_the_one_that_was_meant(plain_site, body, pointer, meant):
    answer = plain_site.client.post("/v1/runs", json=body).json
    (detail,) = [error["detail"] for error in answer["errors"] if error["pointer"] == pointer]
    assert detail == "There is no such field." + (f" Did you mean `{meant}`?" if meant else "")


def test_an_unknown_parameter_names_the_one_that_was_meant(plain_site):
    for given, meant in {"stauts": "status", "created_gt": "created.gt", "labels": "label.NAME"}.items():
        (error,) = plain_site.client.get(f"/v1/runs?{given}=x").json["errors"]
        assert error["detail"] == f"There is no such parameter. Did you mean `{meant}`?"
