"""The admin pages without scripts: what each form does, for whom, and what it refuses."""

from __future__ import annotations

import html
import re

import pytest

from store.access import tenants
from tests.service.dashboard.test_stale_forms import fields_of
from tests.support.waiting import wait_until

PAGE = {"Accept": "text/html"}
HOSTILE = "<script>alert(1)</script>\u202e" + "long" * 30


def text_of(answer):
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.text))


def make_key(site, **which):
    """Headers with a key, and its public id."""
    secret, public_id = site.make_key(**which)
    return {"Authorization": f"Bearer {secret}", **PAGE}, public_id


@pytest.fixture
def key_site(make):
    """A site that demands a key; `operator`, `other`: headers of administrators of the first and of another tenant."""
    site = make(api_key="the-key-of-the-server")
    site.operator, site.operators_key = make_key(site, name="operator's")
    with site.context.database.begin() as transaction:
        number = tenants.create(transaction, "zebra tenant")
    site.other, site.others_key = make_key(site, tenant_id=number, name="zebra key")
    made = site.client.post("/v1/projects", json={"name": "zebra project"}, headers=site.other).json
    site.others_project = made["id"]
    site.others_tenant = site.client.get("/v1/me", headers=site.other).json["tenant"]
    return site


def test_a_key_is_made_its_secret_is_shown_once_and_it_is_revoked_by_its_name(plain_site):
    site = plain_site
    form = {"name": HOSTILE[:25], "scopes": ["read", "runs:write"], "expires": "30 days", "project": ""}
    made = site.client.post("/admin/keys", data=form)
    (secret,) = re.findall(r'value="(bp_[^"]+)"', made.text)
    assert (made.status_code, made.headers["Cache-Control"]) == (200, "no-store")
    me = site.client.get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).json
    assert me["scopes"] == ["read", "runs:write"]
    assert me["expires_at"] is not None
    shown = site.client.get("/admin/keys")
    assert secret not in shown.text
    assert "<script>" not in shown.text.partition("<main")[2]
    key = site.client.get("/v1/keys").json["items"][0]
    page = f"/admin/keys/{key['id']}/revoke"
    assert HOSTILE[:25] in text_of(site.client.get(page))
    for typed in ("", "another", key["id"]):
        refused = site.client.post(page, data={"typed": typed}, headers=PAGE)
        assert (refused.status_code, "not the name" in refused.text) == (422, True)
    assert site.client.get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert site.client.post(page, data={"typed": f" {HOSTILE[:25]}"}).location == "/admin/keys"
    assert site.client.get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert site.client.post(page, data={"typed": HOSTILE[:25]}).status_code == 404
    log = text_of(site.client.get(f"/admin/audit-log?object={key['id']}"))
    assert log.index("key.revoke") < log.index("key.create") < log.index("scopes: read, runs:write")


def test_a_name_that_nobody_can_type_is_confirmed_as_the_page_shows_it(plain_site):
    _, key = make_key(plain_site, name=HOSTILE)
    page = f"/admin/keys/{key}/revoke"
    answer = plain_site.client.get(page)
    assert "\u202e" not in answer.text
    (shown,) = re.findall(r'<label for="typed">Type <code>(.*?)</code>', answer.text)
    assert "\\u202e" in shown
    assert plain_site.client.post(page, data={"typed": html.unescape(shown)}).status_code == 303


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"name": "", "scopes": ["read"]}, "name : Value should have at least 1 item"),
        ({"name": "ann"}, "scopes : List should have at least 1 item"),
        ({"name": "ann", "scopes": ["everything"]}, "scopes/0 : It should be 'read'"),
        ({"name": "ann", "scopes": ["read"], "project": "p"}, "project : String should match"),
    ],
)
def test_a_wrong_form_says_which_field_and_keeps_what_was_typed(plain_site, form, says):
    before = plain_site.client.get("/v1/keys").json["items"]
    answer = plain_site.client.post("/admin/keys", data=form | {"expires": "7 days"}, headers=PAGE)
    assert answer.status_code == 422
    assert says in text_of(answer)
    assert f'value="{form["name"]}"' in answer.text
    assert "<option selected>7 days</option>" in answer.text
    assert plain_site.client.get("/v1/keys").json["items"] == before


def test_the_page_of_keys_says_when_each_was_last_used(make):
    site = make(api_key="the-key-of-the-server")
    secret, _ = site.make_key(name="used")
    site.make_key(name="unused")
    headers = PAGE | {"Authorization": "Bearer the-key-of-the-server"}
    assert site.client.get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 200

    def last_uses():
        rows = re.findall(r"<tr>(.*?)</tr>", site.client.get("/admin/keys", headers=headers).text, re.DOTALL)[1:]
        return {re.search(r'class="cut">(\w+)<', row)[1]: 'data-label="last used">never' not in row for row in rows}

    wait_until(lambda: last_uses() == {"used": True, "unused": False})


def test_a_project_is_made_changed_archived_and_restored(site):
    assert site.client.post("/admin/projects", data={"name": "vision", "keep_days": "5"}).status_code == 303
    project = site.client.get("/v1/projects").json["items"][-1]
    page = f"/admin/projects/{project['id']}"

    def send(path=page, **form):
        (etag, *_) = re.findall(r'name="etag" value="([^"]+)"', site.client.get(page).text)
        return site.client.post(path, data={"etag": html.unescape(etag), **form}, headers=PAGE)

    def load_project():
        return site.client.get(f"/v1/projects/{project['id']}").json

    assert (load_project()["name"], load_project()["keep_days"]) == ("vision", 5)
    assert send(name="vision 2", keep_days="").status_code == 303
    assert (load_project()["name"], load_project()["keep_days"]) == ("vision 2", None)
    for form in ({"name": "vision 3", "keep_days": "soon"}, {"name": "", "keep_days": ""}, {"name": "default"}):
        refused = send(**form)
        assert (refused.status_code, 'role="alert"' in refused.text) == (422, True)
        assert f'name="name" type="text" size="40" maxlength="200" required value="{form["name"]}"' in refused.text
    assert send(f"{page}/archive", typed="vision").status_code == 422
    assert load_project()["archived_at"] is None
    assert send(f"{page}/archive", typed="vision 2").status_code == 303
    assert load_project()["archived_at"] is not None
    assert send(f"{page}/restore").status_code == 303
    assert load_project()["archived_at"] is None
    assert site.client.post(page, data={"etag": "old", "name": "x", "keep_days": ""}).status_code == 412
    assert load_project()["name"] == "vision 2"


def test_the_operator_changes_quotas_and_both_sides_find_it_in_their_log(key_site):
    page = f"/admin/tenants/{key_site.others_tenant}"
    shown = key_site.client.get(page, headers=key_site.operator)
    typed = fields_of(shown.text)
    assert typed["max_queued"] == "10000"
    assert typed["max_gpu_seconds"] == ""
    for wrong in ({"max_running": "0"}, {"max_queued": "many"}, {"weight": "1001"}):
        refused = key_site.client.post(page, data=typed | {"keep_days": "9"} | wrong, headers=key_site.operator)
        assert refused.status_code == 422
        assert f"{next(iter(wrong))} : A whole number from" in text_of(refused)
        assert 'value="9"' in refused.text
    assert key_site.client.get("/v1/me", headers=key_site.other).json["quotas"]["queued"]["allowed"] == 10_000
    assert key_site.client.post(page, data=typed | {"max_queued": "7"}, headers=key_site.operator).status_code == 303
    assert key_site.client.get("/v1/me", headers=key_site.other).json["quotas"]["queued"]["allowed"] == 7
    for headers in (key_site.operator, key_site.other):
        entry = key_site.client.get("/v1/audit-log?limit=1", headers=headers).json["items"][0]
        assert (entry["action"], entry["object"], entry["detail"]) == (
            "tenant.change", key_site.others_tenant, {"max_queued": 7},
        )  # fmt: skip
    assert key_site.client.get("/v1/audit-log?limit=1", headers=key_site.other).json["items"][0]["address"] is None


def test_the_overview_tells_the_operator_more_than_others(key_site):
    node = key_site.worker(slots=4)
    for headers in (key_site.other, key_site.other, key_site.operator):
        assert key_site.post(headers=headers).status_code == 202
    seen = {
        name: text_of(key_site.client.get("/admin", headers=getattr(key_site, name))) for name in ("operator", "other")
    }
    assert node in seen["operator"]
    assert re.search(r"zebra tenant\s+cpu\s+2\s+0", seen["operator"])
    assert node not in seen["other"]
    assert re.search(r"cpu\s+2\s+0", seen["other"])  # its own queue
    assert re.search(r"default\s+cpu\s+1\s+0", seen["operator"])
    assert not re.search(r"tenant\s+cpu|default", seen["other"])
    assert "deleted 30 days after" in seen["other"]


def forms(site):
    """Path of each form of the admin pages, filled with ids of the other tenant."""
    ids = {"key": site.others_key, "project": site.others_project, "tenant": site.others_tenant}
    found = [
        rule for rule in site.app.url_map.iter_rules() if rule.rule.startswith("/admin") and "POST" in rule.methods
    ]
    assert len(found) >= 7
    return [re.sub(r"<(\w+)>", lambda match: ids[match[1]], rule.rule) for rule in found]


FILLED = {"name": "changed", "scopes": "read", "keep_days": "1", "typed": "zebra key", "etag": "x"}


def state(site):
    """All that a form could have changed."""
    paths = ("/v1/keys", "/v1/projects", "/v1/me", "/v1/audit-log")
    of_all = (site.operator, site.other)
    texts = [site.client.get(path, headers=headers).text for path in paths for headers in of_all]
    return [re.sub(r'"last_used_at":("[^"]*"|null)', "", text) for text in texts]


def test_no_form_does_anything_without_the_sessions_token(key_site):
    browser = key_site.app.test_client()
    browser.post("/sign-in", data={"key": key_site.other["Authorization"].removeprefix("Bearer ")})
    assert browser.get("/admin/keys").status_code == 200
    before = state(key_site)
    for path in forms(key_site):
        for form in (FILLED, FILLED | {"csrf": "another"}):
            answer = browser.post(path, data=form)
            assert (answer.status_code, answer.json["code"]) == (403, "csrf-token-needed"), path
    assert state(key_site) == before
    for path in ("/admin/keys", "/admin/projects", f"/admin/projects/{key_site.others_project}"):
        shown = browser.get(path).text.partition("<main")[2]
        assert shown.count('method="post"') == shown.count('name="csrf"') > 0


@pytest.mark.parametrize("scopes", [("read",), ("read", "keys:write"), ("read", "runs:write", "metrics")])
def test_no_form_does_more_than_the_scopes_of_the_key(key_site, scopes):
    reader, _ = make_key(key_site, scopes=scopes)
    admins, admins_key = make_key(key_site, name="zebra key")
    before = state(key_site)
    for path in [*forms(key_site), f"/admin/keys/{admins_key}/revoke"]:
        data = FILLED | {"scopes": "admin"}
        assert key_site.client.post(path, data=data, headers=reader).status_code in {403, 404}, path
    assert state(key_site) == before
    for path in ("/admin/tenants", "/admin/audit-log", *(() if "keys:write" in scopes else ("/admin/keys",))):
        assert key_site.client.get(path, headers=reader).status_code == 403
    header = key_site.client.get("/runs", headers=reader).text.partition("<main")[0]
    assert ('href="/admin"' in header) == ("keys:write" in scopes)
    assert 'href="/admin"' in key_site.client.get("/runs", headers=admins).text


def test_a_tenant_sees_and_changes_nothing_of_another(key_site):
    before = state(key_site)
    others = [path for path in forms(key_site) if key_site.others_key in path or key_site.others_project in path]
    pages = [f"/admin/keys/{key_site.others_key}/revoke", f"/admin/projects/{key_site.others_project}"]
    for send, paths in ((key_site.client.post, others), (key_site.client.get, pages)):
        for path in paths:
            unknown = re.sub(r"_[0-9A-Z]{26}", "_01JD8PZ4T8W2K5C7Q9R3M6X1BA", path)
            for asked in (path, unknown):
                assert send(asked, data=FILLED, headers=key_site.operator).status_code == 404, asked
    for path in ("/admin/tenants", f"/admin/tenants/{key_site.others_tenant}"):
        assert key_site.client.get(path, headers=key_site.other).status_code == 403
    own = key_site.client.post(f"/admin/tenants/{key_site.others_tenant}", data=FILLED, headers=key_site.other)
    assert own.status_code == 403
    assert state(key_site) == before
    for path, mark in {
        "/admin/keys": "zebra key",
        "/admin/projects": "zebra project",
        "/admin/audit-log": "prj_",
    }.items():
        assert mark in key_site.client.get(path, headers=key_site.other).text
        shown = key_site.client.get(path, headers=key_site.operator).text
        assert "zebra" not in shown
        assert key_site.others_project not in shown


def test_a_key_of_one_project_sees_that_project_alone(key_site):
    key_site.client.post("/v1/projects", json={"name": "second"}, headers=key_site.other)
    told = {"name": "p", "scopes": ["admin"], "project": key_site.others_project}
    secret = key_site.client.post("/v1/keys", json=told, headers=key_site.other).json["secret"]
    limited = {"Authorization": f"Bearer {secret}"}
    shown = key_site.client.get("/admin/projects", headers=limited).text
    assert "zebra project" in shown
    assert "second" not in shown
    assert "<form" not in shown.partition("<main")[2]
    for path in forms(key_site):
        assert key_site.client.post(path, data=FILLED, headers=limited).status_code in {403, 404}, path
    for path in ("/admin/keys", "/admin/audit-log", "/admin/tenants"):
        assert key_site.client.get(path, headers=limited).status_code == 403
