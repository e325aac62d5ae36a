"""People paste a key at /sign-in and get a session; what its cookie opens, and when it opens nothing any more."""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.settings import RateLimits

SERVER_KEY = "the-key-of-the-server"
SERVER = {"Authorization": f"Bearer {SERVER_KEY}"}
PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def module_key_site(module_make):
    """A site that demands a key."""
    return module_make(api_key=SERVER_KEY)


@pytest.fixture
def key_site(make):
    """A site that demands a key; `key`: one that may read and submit."""
    site = make(api_key=SERVER_KEY)
    made = site.client.post("/v1/keys", json={"name": "ann", "scopes": ["read", "runs:write"]}, headers=SERVER).json
    site.key, site.key_id, site.prefix = made["secret"], made["id"], made["prefix"]
    site.worker()
    return site


def sign_in(site, key, path="/sign-in", **headers):
    return site.client.post(path, data={"key": key}, headers={**PAGE, **headers})


def token_of(site):
    (token,) = re.findall(r'name="csrf-token" content="([^"]+)"', site.client.get("/rules", headers=PAGE).text)
    return token


def test_a_page_leads_to_the_sign_in_and_back_and_a_program_still_gets_401(key_site):
    asked = key_site.client.get("/runs?status=failed", headers=PAGE)
    assert (asked.status_code, asked.location) == (302, "/sign-in?next=%2Fruns%3Fstatus%3Dfailed")
    shown = key_site.client.get(asked.location, headers=PAGE)
    assert (shown.status_code, shown.headers["Cache-Control"]) == (200, "no-store")
    assert 'action="/sign-in?next=/runs%3Fstatus%3Dfailed"' in shown.text
    with key_site.client.get("/static/site.css") as style:
        assert style.status_code == 200
    for path in ("/v1/runs", "/runs"):
        answer = key_site.client.get(path)
        assert (answer.status_code, answer.json["code"]) == (401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert key_site.client.get("/v1/runs", headers=PAGE).status_code == 401
    answer = sign_in(key_site, f" {key_site.key}\n", asked.location)
    assert (answer.status_code, answer.location) == (303, "/runs?status=failed")
    assert key_site.client.get("/runs", headers=PAGE).status_code == 200


@example(b"/findings", b"q=" + b"a" * 1995)
@example(b"/findings", b"q=" + b"%41" * 700)
@example(b"/runs/x%00", b"")
@example(b"/runs/x%0A%FF\\", b"a=%FF")
@example(b"/findings", b"q=\xff\xc3")
@settings(deadline=None)
@given(st.sampled_from([b"/runs", b"/rules/", b"/findings/", b"/"]), st.binary(max_size=40))
def test_every_page_leads_to_a_form_of_the_sign_in(module_key_site, path, query):
    """`path` is as the browser sends it; so is `query`, whose bytes no browser may have encoded."""
    environ = {"PATH_INFO": unquote_to_bytes(path).decode("latin-1"), "QUERY_STRING": query.decode("latin-1")}
    asked = module_key_site.client.get("/", headers=PAGE, environ_overrides=environ)
    assert asked.status_code == 302, asked.text
    shown = module_key_site.client.get(asked.location, headers=PAGE)
    assert shown.status_code == 200, asked.location
    assert 'name="key"' in shown.text
    signed_in = sign_in(module_key_site, SERVER_KEY, asked.location)
    assert signed_in.status_code == 303
    assert re.match(r"/(?![/\\])", signed_in.location)
    module_key_site.client.delete_cookie("backprobe")


def test_the_session_is_that_of_the_key(key_site):
    sign_in(key_site, key_site.key)
    me = key_site.client.get("/v1/me").json
    assert (me["actor"], me["scopes"]) == (f"key:{key_site.prefix}", ["read", "runs:write"])
    with key_site.client.session_transaction() as cookie:
        assert set(cookie) == {"_permanent", "key", "login", "csrf"}
        assert key_site.key not in cookie.values()
    sign_in(key_site, SERVER_KEY)
    assert key_site.client.get("/v1/me").json["actor"] == "key:server"


@pytest.mark.parametrize("typed", ["", "bp_00000000_typo", f"{SERVER_KEY}x"])
def test_a_typo_is_said_and_opens_nothing(key_site, typed):
    answer = sign_in(key_site, typed, "/sign-in?next=/rules")
    assert (answer.status_code, answer.mimetype) == (401, "text/html")
    assert ("Copy the whole key again" if typed else "No key was pasted") in answer.text
    assert "/sign-in?next=/rules" in answer.text
    assert not typed or typed not in answer.text
    assert "Basic" not in answer.headers["WWW-Authenticate"]
    assert "Set-Cookie" not in answer.headers
    assert key_site.client.get("/v1/me").status_code == 401


@pytest.mark.parametrize(
    "path", ["//evil.example", "https://evil.example", "/\\evil.example", "/sign-in", "\\\\evil", "/\tx", "evil"]
)
def test_the_sign_in_leads_nowhere_else(key_site, path):
    answer = key_site.client.post("/sign-in", query_string={"next": path}, data={"key": key_site.key})
    assert answer.location == "/runs"


def test_another_site_cannot_sign_a_browser_in(key_site):
    answer = sign_in(key_site, key_site.key, Origin="https://evil.example")
    assert answer.status_code == 403
    assert key_site.client.get("/v1/me").status_code == 401


def test_a_write_with_the_cookie_needs_the_sessions_token(key_site):
    sign_in(key_site, key_site.key)
    assert key_site.post().json["code"] == "csrf-token-needed"
    assert key_site.client.post("/play", data={"source": "print(1)"}).json["code"] == "csrf-token-needed"
    assert key_site.post(headers={"X-CSRF-Token": token_of(key_site)}).json["created_by"] == f"key:{key_site.prefix}"


@pytest.mark.parametrize("token", [None, 7])
def test_a_session_without_a_token_writes_nothing_and_its_person_signs_in_again(key_site, token):
    sign_in(key_site, key_site.key)
    with key_site.client.session_transaction() as cookie:
        cookie["csrf"] = token
        if token is None:
            del cookie["csrf"]
    for sent in ({"json": {"source": "x = 1"}}, {"data": {"source": "x = 1", "csrf": str(token)}}):
        refused = key_site.client.post("/play" if "data" in sent else "/v1/runs", **sent)
        assert (refused.status_code, refused.json["code"]) == (403, "csrf-token-needed")
    assert key_site.client.get("/runs", headers=PAGE).location == "/sign-in?next=%2Fruns"


def test_a_session_ends_with_its_key(key_site, make):
    sign_in(key_site, key_site.key)
    cookie = key_site.client.get_cookie("backprobe").value
    assert key_site.app.test_client().delete(f"/v1/keys/{key_site.key_id}", headers=SERVER).status_code == 204
    assert key_site.client.get("/v1/me").status_code == 401
    key_site.client.set_cookie("backprobe", cookie)
    assert key_site.client.get("/runs", headers=PAGE).location.startswith("/sign-in?")


def test_another_key_of_the_server_ends_the_sessions_of_the_one_before(key_site, make):
    sign_in(key_site, SERVER_KEY)
    changed = make(api_key="another", secret=key_site.context.settings.secret)
    changed.client.set_cookie("backprobe", key_site.client.get_cookie("backprobe").value)
    assert changed.client.get("/v1/me").status_code == 401


def test_signing_out_ends_every_copy_of_the_cookie(key_site):
    sign_in(key_site, key_site.key)
    copy = key_site.app.test_client()
    copy.set_cookie("backprobe", key_site.client.get_cookie("backprobe").value)
    assert copy.get("/v1/me").status_code == 200
    assert key_site.client.post("/logout").json["code"] == "csrf-token-needed"
    answer = key_site.client.post("/logout", data={"csrf": token_of(key_site)})
    assert (answer.status_code, answer.location) == (302, "/sign-in")
    assert key_site.client.get("/v1/me").status_code == 401
    assert copy.get("/v1/me").status_code == 401


def test_a_password_that_the_browser_kept_does_not_shut_a_person_out(key_site):
    """A browser sends what was once typed into its Basic dialogue with each request."""
    stale = {"Authorization": f"Basic {base64.b64encode(b'x:the-key-before').decode()}"}
    assert key_site.client.get("/runs", headers=PAGE | stale).location == "/sign-in?next=%2Fruns"
    assert sign_in(key_site, key_site.key, **stale).status_code == 303
    assert key_site.client.get("/runs", headers=PAGE | stale).status_code == 200
    assert key_site.client.get("/v1/me", headers={"Authorization": "Bearer another"}).status_code == 401


def test_sign_ins_count_for_the_rate_of_the_key(make):
    site = make(api_key=SERVER_KEY, rates=RateLimits(reads=2))
    answers = [sign_in(site, SERVER_KEY).status_code for _ in range(3)]
    assert answers == [303, 303, 429]


def test_over_https_the_cookie_is_for_this_host_and_no_script(make):
    site = make(api_key=SERVER_KEY, https=True)
    answer = site.client.post("/sign-in", data={"key": SERVER_KEY}, base_url="https://localhost")
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert cookie.startswith("__Host-backprobe=")
    assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_a_service_that_asks_for_no_key_leads_on(plain_site):
    assert plain_site.client.get("/sign-in?next=/rules").location == "/rules"


def test_with_a_provider_a_key_signs_in_too(make):
    from service.auth.oidc_settings import OidcSettings

    oidc = OidcSettings(
        issuer="https://id.example",
        client_id="b",
        client_secret="s",
        url="http://127.0.0.1:8000",
        allowed=("@example.org",),
    )
    site = make(api_key=SERVER_KEY, oidc=oidc)
    assert 'href="/login?next=/rules"' in site.client.get("/sign-in?next=/rules").text
    assert sign_in(site, SERVER_KEY).status_code == 303
    assert site.client.post("/logout", data={"csrf": token_of(site)}).location == "/sign-in"
