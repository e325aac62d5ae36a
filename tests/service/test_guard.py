"""Who may ask: loopback names without a key, the key's holder with one; never another site's page."""

from __future__ import annotations

import base64

import pytest

KEY = "correct-horse"
PATHS = [
    "/v1/runs",
    "/v1/runs/run_00000000000000000000000000",
    "/runs",
    "/openapi.json",
    "/nowhere",
    "/",
    "/static/site.css",
]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "10.0.0.5:8000",
        "[2001:db8::1]",
        "",
        "[",
        "[::1",
        "a@127.0.0.1",
        "localhost:abc",
        "localhost:",
        "localhost:123456",
        "127.0.0.1/x",
        "[localhost]",
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_without_a_key_a_foreign_host_is_refused(plain_site, host, path):
    answer = plain_site.client.get(path, headers={"Host": host})
    assert (answer.status_code, answer.json["code"]) == (403, "foreign-host")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"])
def test_loopback_names_are_served(plain_site, host):
    assert plain_site.client.get("/v1/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://localhost:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_write_from_another_page_is_refused(plain_site, headers):
    answer = plain_site.post(headers=headers)
    assert (answer.status_code, answer.json["code"]) == (403, "foreign-origin")
    answer = plain_site.client.post("/v1/runs/run_00000000000000000000000000/cancel", headers=headers)
    assert (answer.status_code, answer.json["code"]) == (403, "foreign-origin")


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
def test_a_write_of_our_own_or_of_a_program_is_taken(plain_site, headers):
    assert plain_site.post(headers=headers).status_code == 202


@pytest.mark.parametrize("path", [path for path in PATHS if not path.startswith("/static")])
@pytest.mark.parametrize(
    "sent", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic !!"}, {"Authorization": "Bearer"}]
)
def test_with_a_key_nothing_is_told_without_it(make, path, sent):
    client = make(api_key=KEY).client
    answer = client.get(path, headers=sent)
    assert (answer.status_code, answer.json["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_key_opens_as_bearer_and_as_basic_password_from_anywhere(make):
    client = make(api_key=KEY).client
    basic = base64.b64encode(f"anyone:{KEY}".encode()).decode()
    for sent in (f"Bearer {KEY}", f"Basic {basic}"):
        answer = client.get("/v1/runs", headers={"Authorization": sent, "Host": "backprobe.example"})
        assert answer.status_code == 200


def test_health_needs_no_key(make):
    client = make(api_key=KEY).client
    assert client.get("/healthz", headers={"Host": "api:8000"}).json == {"status": "ok"}
    assert client.get("/readyz", headers={"Host": "api:8000"}).status_code == 200


def test_every_answer_carries_the_headers_that_keep_it_inert(plain_site):
    for path in ("/v1/runs", "/nowhere", "/runs", "/healthz", "/openapi.json", "/static/site.css"):
        with plain_site.client.get(path) as answer:
            headers = answer.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] in {"no-referrer", "same-origin"}
        assert headers["X-Request-Id"].startswith("req_")


@pytest.mark.parametrize(
    ("sent", "kept"), [("abcdefgh", True), ("a" * 64, True), ("short", False), ("a" * 65, False), ("with blank", False)]
)
def test_a_request_id_is_taken_if_it_is_one(plain_site, sent, kept):
    given = plain_site.client.get("/healthz", headers={"X-Request-Id": sent}).headers["X-Request-Id"]
    assert (given == sent) is kept


def test_behind_tls_a_plain_page_of_the_same_name_is_another(make):
    """Who can change what comes by http can write such a page for any name."""
    site = make(https=True)
    assert site.post(headers={"Origin": "https://localhost"}).status_code == 202
    for origin in ("http://localhost", "ftp://localhost", "//localhost"):
        answer = site.post(headers={"Origin": origin})
        assert (answer.status_code, answer.json["code"]) == (403, "foreign-origin"), origin


@pytest.mark.parametrize("sent", ["Bearer", "Bearer ", "bearer  "])
def test_an_empty_bearer_is_no_key(plain_site, make, sent):
    """What curl sends where the variable for the key is not set."""
    assert plain_site.client.get("/v1/runs", headers={"Authorization": sent}).status_code == 200
    refused = make(api_key=KEY).client.get("/v1/runs", headers={"Authorization": sent})
    assert (refused.status_code, refused.json["detail"]) == (401, "No key was sent.")


def test_an_empty_bearer_does_not_open_a_foreign_host(plain_site):
    answer = plain_site.client.get("/v1/runs", headers={"Authorization": "Bearer ", "Host": "evil.example"})
    assert answer.status_code == 403


def test_a_service_without_a_key_says_to_leave_it_away(plain_site):
    answer = plain_site.client.get("/v1/runs", headers={"Authorization": "Bearer other"})
    assert (answer.status_code, answer.json["code"]) == (401, "unauthenticated")
    assert "This service asks for no key" in answer.json["detail"]
    assert answer.json["hint"].startswith("Send no Authorization header")
