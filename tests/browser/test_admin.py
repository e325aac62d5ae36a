"""Sign-in, admin pages and the list of runs with a wrong filter in Chromium: whole at three widths, in both themes, by keyboard."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Walk
from tests.browser.test_pages import BASICS, CONTRAST, CUT_OFF, SIDEWAYS
from tests.browser.test_panes import AXE
from tests.support.site import make_site

KEY = "the-key-of-the-server"
HOSTILE = "<script>alert(1)</script>\u202e" + "a_long_name_" * 12


def fill(site):
    """Make what the pages show, with names as long and hostile as they come; the addresses of all pages."""
    from store.access import tenants

    operator = {"Authorization": f"Bearer {KEY}"}
    site.worker(slots=4, probe={"why": "bubblewrap is not installed: " + "/very/long/path" * 12}, levels=())
    site.worker(("process",), slots=2)
    with site.context.database.begin() as transaction:
        tenant = tenants.create(transaction, HOSTILE)
        public_id = tenants.public_id(transaction, tenant)
    other, _ = site.make_key(tenant_id=tenant)
    _, key = site.make_key(name=HOSTILE)
    for secret in (other, other, other, KEY):
        site.client.post("/v1/runs", json={"source": "x = 1"}, headers={"Authorization": f"Bearer {secret}"})
    name = "<script>alert(1)</script>" + "a_long_name_" * 14
    project = site.client.post("/v1/projects", json={"name": name, "keep_days": 5}, headers=operator).json["id"]
    site.client.post("/v1/keys", json={"name": name, "scopes": ["read"], "project": project}, headers=operator)
    return {
        "admin": "/admin",
        "keys": "/admin/keys",
        "revoke": f"/admin/keys/{key}/revoke",
        "projects": "/admin/projects",
        "project": f"/admin/projects/{project}",
        "tenants": "/admin/tenants",
        "tenant": f"/admin/tenants/{public_id}",
        "audit-log": "/admin/audit-log",
        "audit-log-wrong": "/admin/audit-log?at.gt=monday&actor=" + "x" * 150,
        "runs": "/runs?label.team=vision",
        "runs-wrong": "/runs?since=yesterday&q=" + "long" * 40 + "&stauts=failed",
        "sign-in": "/sign-in?next=/rules",
    }


@pytest.fixture(scope="module")
def key_site(tmp_path_factory):
    """A server that demands a key; address and pages."""
    from service.process.address import listen
    from service.server.http_server import Server

    site = make_site(tmp_path_factory.mktemp("home"), None, api_key=KEY)
    pages = fill(site)
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=4)
    server.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", pages
    server.stop()
    site.context.close()


@pytest.fixture(params=["light", "dark"])
def tab(request, browser, key_site):
    """A tab in either theme, in which nobody has signed in; nothing may have gone wrong in it."""
    context = browser.new_context(
        color_scheme=request.param, viewport={"width": 1280, "height": 900}, base_url=key_site[0]
    )
    walk = Walk(context.new_page(), key_site[0])
    yield walk.tab
    context.close()
    # Chromium reports the status of a page on purpose wrong (422, 401) as an error of the console.
    assert [fault for fault in walk.faults if "status of 4" not in fault] == []


def sign_in(tab, path):
    tab.goto(path)
    tab.fill("#key", KEY)
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**{path}")


def test_every_page_is_whole_at_every_width(tab, key_site):
    from axe_playwright_python.base import AXE_SCRIPT

    sign_in(tab, "/admin")
    for name, path in key_site[1].items():
        tab.goto(path)
        for width in (390, 1280, 1920):
            tab.set_viewport_size({"width": width, "height": 900})
            assert "\n".join(tab.evaluate(CUT_OFF)) == "", (name, width)
            assert "\n".join(tab.evaluate(SIDEWAYS)) == "", (name, width)
        for faults in (BASICS, CONTRAST):
            assert "\n".join(tab.evaluate(faults)) == "", name
        tab.evaluate(AXE_SCRIPT)
        assert tab.evaluate(AXE) == [], name
        assert "\u202e" not in tab.content()


def test_from_the_sign_in_to_a_new_key_that_signs_in_and_is_revoked(tab):
    tab.goto("/admin/keys")
    tab.fill("#key", "a typo")
    tab.keyboard.press("Enter")
    assert "does not open the service" in tab.locator("#fault").inner_text()
    sign_in(tab, "/admin/keys")
    tab.fill("[name=name]", "ann's laptop")
    tab.check("[value='keys:write']")
    tab.click("text=Make the key")
    secret = tab.locator("#secret").input_value()
    assert secret.startswith("bp_")
    tab.click("text=Sign out")
    tab.fill("#key", secret)
    tab.click("button:has-text('Sign in')")
    assert "key:bp_" in tab.locator(".person").inner_text()
    tab.click("nav >> text=Admin")
    tab.click("nav >> text=Keys")
    tab.click("[aria-label^='Revoke ann']")
    tab.fill("#typed", "ann's laptop")
    tab.click("text=Revoke the key")
    tab.wait_for_url("**/sign-in?next=**")  # it was the key of this session
