"""People log in with their browser; what the cookie opens, and what it does not. The provider is a real one on a socket."""

from __future__ import annotations

import time

import httpx
import pytest
import trustme
from joserfc.jwk import ECKey, OctKey, OKPKey

from service.auth.oidc_settings import OidcSettings
from service.process.address import listen
from service.server.http_server import Server
from service.settings import Settings, children_environment
from tests.support import samples
from tests.support.front import Front
from tests.support.provider import CLIENT, KEY, SECRET, Provider

SITE = "http://127.0.0.1:8000"
PAGE = {"Accept": "text/html"}


@pytest.fixture
def provider():
    server = Provider()
    yield server
    server.close()


@pytest.fixture
def door(make, provider):
    """`door(**more)`: a site where this provider lets people in."""

    def open_door(*, https=False, **more):
        told = {
            "issuer": provider.issuer,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "url": SITE,
            "allowed": ("@example.org", "bob@other.example"),
        }
        site = make(oidc=OidcSettings(**told | more), api_key="the-key", https=https)
        site.browser = site.app.test_client()
        return site

    return open_door


def begin(site, path="/login"):
    answer = site.browser.get(path)
    assert answer.status_code == 302, answer.text
    return answer.headers["Location"]


def back(site, given):
    return site.browser.get("/login/callback", query_string=given)


def enter(site, provider, path="/login"):
    return back(site, provider.authorize(begin(site, path)))


def test_a_browser_is_led_to_the_provider_and_back_to_the_page(door, provider):
    site = door()
    asked = site.browser.get("/runs?status=failed", headers=PAGE)
    assert (asked.status_code, asked.headers["Location"]) == (302, "/login?next=%2Fruns%3Fstatus%3Dfailed")
    answer = enter(site, provider, asked.headers["Location"])
    assert (answer.status_code, answer.headers["Location"]) == (302, "/runs?status=failed")
    page = site.browser.get("/runs", headers=PAGE)
    assert (page.status_code, "ann@example.org" in page.text) == (200, True)
    me = site.browser.get("/v1/me").json
    assert (me["actor"], set(me["scopes"])) == ("user:ann@example.org", {"read", "runs:write", "findings:write"})


def test_who_has_not_logged_in_sees_nothing(door):
    site = door()
    for path in ("/runs", "/rules", "/"):
        assert site.browser.get(path, headers=PAGE).headers["Location"].startswith("/login?")
    for path in ("/v1/runs", "/v1/me", "/openapi.json"):
        assert site.browser.get(path).status_code == 401
    assert site.browser.get("/v1/runs", headers=PAGE).status_code == 401
    assert site.browser.get("/v1/runs", headers={"Authorization": "Bearer the-key"}).status_code == 200


def test_without_a_key_of_the_server_the_login_still_closes_it(make, door):
    site = door()
    open_site = make(oidc=site.context.settings.oidc)
    assert open_site.client.get("/v1/runs").status_code == 401


@pytest.mark.parametrize("url", [SITE, "https://backprobe.example"])
def test_the_cookie_is_for_this_service_alone(door, provider, url):
    site = door(url=url)
    way = provider.authorize(site.browser.get("/login", base_url=url).headers["Location"])
    answer = site.browser.get("/login/callback", base_url=url, query_string=way)
    (cookie,) = answer.headers.getlist("Set-Cookie")
    parts = {part.strip().partition("=")[0] for part in cookie.split(";")}
    assert {"HttpOnly", "SameSite", "Path"} <= parts
    assert "Domain" not in parts
    assert "SameSite=Lax" in cookie
    assert (cookie.startswith("__Host-backprobe="), "Secure" in parts) == (url != SITE, url != SITE)


@pytest.fixture
def behind_tls(door, full_tier):
    """A site on a socket, behind a front that ends TLS; the front."""
    with Front(trustme.CA()) as front:
        listening = listen("127.0.0.1", 0)
        front.inner = listening.getsockname()[1]
        server = Server(door(url=front.url, https=True).app, listening, threads=4)
        server.start()
        yield front
        server.stop()


def flags(cookie):
    """Of a Set-Cookie as it went over the wire: name, value, and its attributes."""
    pair, *attributes = cookie.split("; ")
    name, _, value = pair.partition("=")
    return name, value, {attribute.partition("=")[0]: attribute.partition("=")[2] for attribute in attributes}


def test_every_cookie_of_a_login_over_https_is_closed_to_scripts_other_sites_and_plain_http(behind_tls, provider):
    front = behind_tls
    with httpx.Client(base_url=front.url, verify=front.trusts, timeout=60, trust_env=False) as browser:
        begun = browser.get("/login")
        back = browser.get("/login/callback", params=provider.authorize(begun.headers["Location"]))
        assert (begun.status_code, back.status_code, back.headers["Location"]) == (302, 302, "/runs")
        assert len(front.cookies) == 2
        me = browser.get("/v1/me")
        assert me.json()["actor"] == "user:ann@example.org"
        assert me.headers["Strict-Transport-Security"] == "max-age=31536000"
        assert len(front.cookies) == 2  # no answer but a login's has the cookie in it
        for url, sends in ((front.url, True), (f"http://localhost:{front.inner}", False)):
            assert ("Cookie" in browser.build_request("GET", f"{url}/v1/me").headers) == sends
        page = browser.get("/runs", headers=PAGE).text
        token = page.partition('name="csrf-token" content="')[2].partition('"')[0]
        assert browser.post("/logout", data={"csrf": token}).status_code == 302
        assert browser.get("/v1/me").status_code == 401
    names, values, told = zip(*map(flags, front.cookies), strict=True)
    assert set(names) == {"__Host-backprobe"}
    assert [bool(value) for value in values[:3]] == [True, True, False]
    for attributes in told:
        assert {"Secure", "HttpOnly"} <= set(attributes)
        assert (attributes["SameSite"], attributes["Path"]) == ("Lax", "/")
        assert "Domain" not in attributes
    assert "Expires" in told[1]  # of twelve hours; what a login needs on its way ends with the browser
    assert "Expires" not in told[0]


def test_another_state_is_refused(door, provider):
    site = door()
    given = provider.authorize(begin(site)) | {"state": "another"}
    answer = back(site, given)
    assert (answer.status_code, answer.json["code"]) == (400, "login-failed")
    assert site.browser.get("/v1/me").status_code == 401


def test_the_answer_of_another_browser_is_refused(door, provider):
    site = door()
    given = provider.authorize(begin(site))
    site.browser = site.app.test_client()
    assert back(site, given).json["code"] == "login-failed"


WRONG = {
    "another audience": {"aud": "another-client"},
    "another issuer": {"iss": "https://evil.example"},
    "another nonce": {"nonce": "another"},
    "ended": {"exp": int(time.time()) - 3600, "iat": int(time.time()) - 7200},
}


@pytest.mark.parametrize("claims", WRONG.values(), ids=WRONG)
def test_an_id_token_that_is_not_for_this_login_is_refused(door, provider, claims):
    site = door()
    provider.claims = claims
    answer = enter(site, provider)
    assert (answer.status_code, answer.json["code"]) == (400, "login-failed")
    assert site.browser.get("/v1/me").status_code == 401


def test_a_token_by_another_key_is_refused(door, provider):
    site = door()
    provider.signing = type(provider.key).generate_key(2048, {"kid": "one"})
    assert enter(site, provider).json["code"] == "login-failed"


NOT_SIGNED = {
    "nobody's signature": ("none", b"", False),
    "HMAC with the public key": ("HS256", KEY.as_pem(private=False), False),
    "HMAC with a key of the provider's": ("HS256", b"k" * 32, True),
    "HMAC with the client's secret": ("HS512", SECRET.encode(), True),
}


@pytest.mark.parametrize("named", [["none", "HS256", "HS512", "RS256"], None], ids=["named", "nothing named"])
@pytest.mark.parametrize(("algorithm", "key", "published"), NOT_SIGNED.values(), ids=NOT_SIGNED)
def test_what_no_private_key_signed_is_refused_whatever_the_provider_says(
    door, provider, algorithm, key, published, named
):
    site = door()
    provider.algorithm, provider.signing, provider.named_algorithms = algorithm, key, named
    provider.more_keys = [OctKey.import_key(key, {"kid": "one"})] if published else []
    answer = enter(site, provider)
    assert (answer.status_code, answer.json["code"]) == (400, "login-failed")
    assert site.browser.get("/v1/me").status_code == 401


SIGNED = {
    "RS512": KEY,
    "PS256": KEY,
    "ES384": ECKey.generate_key("P-384", {"kid": "two"}),
    "Ed25519": OKPKey.generate_key("Ed25519", {"kid": "two"}),
}


def test_of_the_algorithms_each_needs_a_private_key():
    """The library refuses `none` besides, whatever it is given."""
    from service.auth.login import ALGORITHMS

    assert {algorithm[:2] for algorithm in ALGORITHMS} == {"RS", "PS", "ES", "Ed"}


@pytest.mark.parametrize(("algorithm", "key"), SIGNED.items(), ids=SIGNED)
def test_each_algorithm_with_a_private_key_is_taken(door, provider, algorithm, key):
    site = door()
    provider.algorithm, provider.signing, provider.named_algorithms = algorithm, key, None
    provider.more_keys = [key] if key.kid == "two" else []
    assert enter(site, provider).status_code == 302
    assert site.browser.get("/v1/me").json["actor"] == "user:ann@example.org"


def test_a_provider_that_calls_itself_otherwise_is_refused(door, provider):
    site = door()
    provider.named = "https://evil.example"
    assert enter(site, provider).json["code"] == "login-failed"


REFUSED = {
    "not verified": {"email_verified": False},
    "verified by a word": {"email_verified": "true"},
    "no address": {"email": None},
    "another domain": {"email": "ann@example.org.evil.example"},
    "a domain below": {"email": "ann@sub.example.org"},
    "another person": {"email": "ann@other.example"},
    "a line break": {"email": "ann@evil.example\n@example.org"},
}


@pytest.mark.parametrize("claims", REFUSED.values(), ids=REFUSED)
def test_whom_the_operator_does_not_name_is_not_let_in(door, provider, claims):
    site = door()
    provider.claims = claims
    answer = enter(site, provider)
    assert (answer.status_code, answer.json["code"]) == (403, "login-refused")
    assert site.browser.get("/v1/me").status_code == 401


def test_a_person_that_is_named_is_let_in_and_may_do_what_was_set(door, provider):
    site = door(scopes=("read",))
    provider.claims = {"email": "Bob@Other.example"}
    assert enter(site, provider).status_code == 302
    token = token_of(site)
    answer = site.browser.post("/v1/runs", json={"source": "x = 1"}, headers={"X-CSRF-Token": token})
    assert answer.json["code"] == "scope-missing"


def test_nothing_of_the_session_before_outlives_the_login(door, provider):
    site = door()
    given = provider.authorize(begin(site))
    with site.browser.session_transaction() as before:
        before["csrf"] = before["planted"] = "known to another"
    back(site, given)
    with site.browser.session_transaction() as after:
        assert set(after) == {"_permanent", "email", "login", "csrf"}
        assert after["csrf"] != "known to another"


def token_of(site):
    page = site.browser.get("/runs", headers=PAGE).text
    return page.partition('name="csrf-token" content="')[2].partition('"')[0]


ACTIONS = (
    {"state": "acknowledged"},
    {"state": "suppressed", "reason": "by design", "muted_until": None},
    {"owner": "ann@example.org"},
    {"state": "fixed"},
    {"state": "open"},
)


def test_each_action_of_the_inbox_needs_the_sessions_token(door, provider):
    site = door()
    key = {"Authorization": "Bearer the-key"}
    program = {"source": samples.TUTORIAL, "entry": "snippet.py"}
    run = site.client.post("/v1/runs", json=program, headers=key).json["id"]
    site.finish(run, samples.tutorial())
    enter(site, provider)
    (group,) = site.browser.get("/v1/finding-groups").json["items"]
    for body in ACTIONS:
        address, tag = group["links"]["self"], {"If-Match": f'"{group["version"]}"'}
        refused = site.browser.patch(address, json=body, headers=tag)
        assert (refused.status_code, refused.json["code"]) == (403, "csrf-token-needed")
        assert site.browser.get(address).json["version"] == group["version"]
        group = site.browser.patch(address, json=body, headers={**tag, "X-CSRF-Token": token_of(site)}).json
        assert body.items() <= group.items()
    assert group["state_by"] == "user:ann@example.org"
    assert group["id"] in site.browser.get("/findings?owner=me", headers=PAGE).text


def test_a_write_with_the_cookie_needs_the_sessions_token(door, provider):
    site = door()
    site.worker()
    enter(site, provider)
    body = {"json": {"source": "x = 1"}}
    for headers in ({}, {"X-CSRF-Token": "another"}):
        answer = site.browser.post("/v1/runs", headers=headers, **body)
        assert (answer.status_code, answer.json["code"]) == (403, "csrf-token-needed")
    headers = {"X-CSRF-Token": token_of(site)}
    foreign = site.browser.post("/v1/runs", headers=headers | {"Origin": "https://evil.example"}, **body)
    assert foreign.json["code"] == "foreign-origin"
    made = site.browser.post("/v1/runs", headers=headers, **body)
    assert (made.status_code, made.json["created_by"]) == (202, "user:ann@example.org")


def test_a_cookie_that_was_changed_or_is_over_opens_nothing(door, provider, monkeypatch):
    site = door()
    enter(site, provider)
    cookie = site.browser.get_cookie("backprobe")
    payload, _, rest = cookie.value.partition(".")
    site.browser.set_cookie("backprobe", f"{payload[:-2]}AA.{rest}")
    assert site.browser.get("/v1/me").status_code == 401
    site.browser.set_cookie("backprobe", cookie.value)
    assert site.browser.get("/v1/me").status_code == 200
    later = time.time() + 12 * 3600 + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert site.browser.get("/v1/me").status_code == 401


def test_whom_the_operator_names_no_more_is_out_at_once(door, provider):
    site = door()
    enter(site, provider)
    cookie = site.browser.get_cookie("backprobe").value
    stricter = door(allowed=("bob@other.example",))
    stricter.app.secret_key = site.app.secret_key
    stricter.browser.set_cookie("backprobe", cookie)
    assert stricter.browser.get("/v1/me").status_code == 401


def test_logging_out(door, provider):
    site = door()
    enter(site, provider)
    token = token_of(site)
    assert site.browser.post("/logout").json["code"] == "csrf-token-needed"
    answer = site.browser.post("/logout", data={"csrf": token})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/login")
    assert site.browser.get("/v1/me").status_code == 401


def test_a_copy_of_the_cookie_opens_nothing_after_the_logout(door, provider):
    site = door()
    enter(site, provider)
    cookie, token = site.browser.get_cookie("backprobe").value, token_of(site)
    other = site.app.test_client()
    enter_as_other = site.app.test_client()
    other.set_cookie("backprobe", cookie)
    assert other.get("/v1/me").json["actor"] == "user:ann@example.org"
    site.browser, first = enter_as_other, site.browser
    enter(site, provider)
    assert first.post("/logout", data={"csrf": token}).status_code == 302
    assert other.get("/v1/me").status_code == 401
    assert other.get("/runs", headers=PAGE).headers["Location"].startswith("/login?")
    assert other.post("/logout", data={"csrf": token}).status_code == 401
    assert enter_as_other.get("/v1/me").json["actor"] == "user:ann@example.org"


def test_a_cookie_whose_logout_could_not_be_stored_opens_nothing(door, provider):
    site = door()
    enter(site, provider)
    with site.browser.session_transaction() as cookie:
        del cookie["login"]  # as the release before made it
    assert site.browser.get("/v1/me").status_code == 401


def test_ends_of_logins_are_forgotten_when_their_cookies_are_over(door, provider):
    from store.access import logins
    from store.tables import Now, ended_login

    site = door()
    with site.context.database.begin() as transaction:
        logins.end(transaction, "old", "user:ann@example.org", kept_seconds=43_200.0)
        transaction.execute(ended_login.update().values(ended_at=Now(-43_300.0)))
        logins.end(transaction, "new", "user:ann@example.org", kept_seconds=43_200.0)
        logins.end(transaction, "new", "user:ann@example.org", kept_seconds=43_200.0)
        assert [logins.has_ended(transaction, login) for login in ("old", "new", "none")] == [False, True, False]


@pytest.mark.parametrize(
    "path", ["//evil.example", "https://evil.example", "/\\evil.example", "/login", "\\\\evil", "/\tx", "evil"]
)
def test_the_login_leads_nowhere_else(door, provider, path):
    site = door()
    begun = site.browser.get("/login", query_string={"next": path})
    answer = back(site, provider.authorize(begun.headers["Location"]))
    assert answer.headers["Location"] == "/runs"


@pytest.mark.parametrize("where", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_a_provider_that_fails_is_said(door, provider, where):
    site = door()
    provider.answers[where] = 500
    begun = site.browser.get("/login")
    answer = begun if begun.status_code != 302 else back(site, provider.authorize(begun.headers["Location"]))
    assert answer.status_code in (400, 502)
    assert answer.json["code"] in ("provider-away", "login-failed")


def test_a_provider_that_is_away_is_said(door, provider):
    site = door()
    provider.close()
    answer = site.browser.get("/login")
    assert (answer.status_code, answer.json["code"]) == (502, "provider-away")


def test_no_code_no_token_and_no_secret_is_in_the_log(door, provider, caplog, capfd):
    site = door()
    caplog.set_level("DEBUG", logger="service")
    given = provider.authorize(begin(site))
    back(site, given)
    back(site, given)  # the second time it is refused
    said = caplog.text + "".join(capfd.readouterr())
    for word in (given["code"], given["state"], SECRET, site.browser.get_cookie("backprobe").value):
        assert word not in said


def test_where_no_provider_is_configured_there_is_no_login(plain_site):
    assert plain_site.client.get("/login").status_code == 404
    assert plain_site.client.get("/runs", headers=PAGE).status_code == 200


TOLD = {
    "BACKPROBE_OIDC_ISSUER": "https://id.example/realm",
    "BACKPROBE_OIDC_CLIENT_ID": "b",
    "BACKPROBE_OIDC_CLIENT_SECRET": "hush-hush",
    "BACKPROBE_OIDC_URL": "https://backprobe.example/",
    "BACKPROBE_OIDC_ALLOWED": "@Example.org, bob@other.example",
}


def test_the_environment_tells_the_provider():
    found = OidcSettings.from_environment(TOLD)
    assert (found.url, found.secure, found.allowed) == (
        "https://backprobe.example", True, ("@example.org", "bob@other.example"),
    )  # fmt: skip
    assert OidcSettings.from_environment({}) is None
    assert OidcSettings.from_environment(TOLD | {"BACKPROBE_OIDC_SCOPES": "read"}).scopes == ("read",)
    assert "hush-hush" not in repr(found)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        *(({name: ""}, name) for name in TOLD),
        ({"BACKPROBE_OIDC_ISSUER": "http://id.example"}, "https"),
        ({"BACKPROBE_OIDC_URL": "backprobe.example"}, "https"),
        ({"BACKPROBE_OIDC_URL": "https://backprobe.example/below"}, "ends after the host"),
        ({"BACKPROBE_OIDC_ALLOWED": "example.org"}, "@example.org"),
        ({"BACKPROBE_OIDC_ALLOWED": "*"}, "@example.org"),
        ({"BACKPROBE_OIDC_SCOPES": "read,everything"}, "everything"),
    ],
)
def test_what_cannot_be_followed_is_said_at_the_start(wrong, said):
    with pytest.raises(ValueError, match="BACKPROBE_OIDC") as error:
        OidcSettings.from_environment(TOLD | wrong)
    assert said in str(error.value)


def test_a_worker_is_not_told_the_clients_secret(tmp_path):
    settings = Settings.from_environment(TOLD, tmp_path)
    assert "BACKPROBE_OIDC_CLIENT_SECRET" not in children_environment(settings.store, TOLD)
