"""Pages of other sites may not ask, but for origins that the operator has listed."""

from __future__ import annotations

import pytest

LISTED = "https://ide.example"
ASKS = {"Origin": LISTED, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
KEY = {"Authorization": "Bearer the-server"}


@pytest.fixture
def open_to(make):
    """`open_to(LISTED)`: an application whose API pages of these origins may ask."""
    return lambda *origins, **more: make(api_key="the-server", origins=origins, **more).client


def test_by_default_no_page_of_another_site_is_answered_to(open_to):
    client = open_to()
    for method, path in (("OPTIONS", "/v1/runs"), ("GET", "/v1/me"), ("GET", "/healthz")):
        answer = client.open(path, method=method, headers={**KEY, **ASKS})
        assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
    assert client.post("/v1/runs", json={"source": "x = 1\n"}, headers={**KEY, "Origin": LISTED}).status_code == 403


def test_a_listed_page_may_ask_with_a_key_and_read_the_answer(open_to):
    client = open_to("https://other.example", LISTED)
    asked = client.options("/v1/runs", headers=ASKS)
    assert (asked.status_code, asked.headers["Access-Control-Allow-Origin"]) == (204, LISTED)
    assert "POST" in asked.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
    sent = {**KEY, "Origin": LISTED, "Sec-Fetch-Site": "cross-site"}
    made = client.post("/v1/runs", json={"source": "x = 1\n"}, headers=sent)
    assert (made.status_code, made.headers["Access-Control-Allow-Origin"]) == (202, LISTED)
    assert "Location" in made.headers["Access-Control-Expose-Headers"]
    refused = client.get("/v1/runs", headers={"Origin": LISTED})
    assert (refused.status_code, refused.headers["Access-Control-Allow-Origin"]) == (401, LISTED)
    for answer in (asked, made, refused):
        assert "Origin" in answer.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize("origin", ["https://ide.example.evil.example", "http://ide.example", "null", f"{LISTED}:444"])
def test_a_page_that_is_not_listed_may_not(open_to, origin):
    client = open_to(LISTED)
    for answer in (
        client.options("/v1/runs", headers={**ASKS, "Origin": origin}),
        client.post("/v1/runs", json={"source": "x = 1\n"}, headers={**KEY, "Origin": origin}),
    ):
        assert answer.status_code in {401, 403}
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert "Origin" in answer.headers["Vary"]


def test_the_pages_are_for_nobody_elses_pages(open_to):
    client = open_to(LISTED)
    for path in ("/runs", "/static/site.css"):
        with client.get(path, headers={**KEY, "Origin": LISTED}) as answer:
            assert answer.status_code == 200
            assert "Access-Control-Allow-Origin" not in answer.headers


def test_behind_tls_a_browser_is_told_to_stay_there(open_to):
    assert open_to(https=True).get("/v1/runs").headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "Strict-Transport-Security" not in open_to().get("/v1/runs").headers


@pytest.mark.parametrize(
    "text", ["*", "ide.example", "https://ide.example/", "https://a.example, null", "ftp://a.example"]
)
def test_what_is_no_origin_is_refused_at_the_start(tmp_path, text):
    from service.settings import Settings

    with pytest.raises(ValueError, match="BACKPROBE_CORS_ORIGINS"):
        Settings.from_environment({"BACKPROBE_CORS_ORIGINS": text}, tmp_path)
    environ = {"BACKPROBE_CORS_ORIGINS": "https://a.example, http://[::1]:8080", "BACKPROBE_HTTPS": "1"}
    kept = Settings.from_environment(environ, tmp_path)
    assert (kept.origins, kept.https) == (("https://a.example", "http://[::1]:8080"), True)
