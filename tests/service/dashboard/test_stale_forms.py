"""Forms that change what is stored: one that was opened before somebody else's change does not undo it."""

from __future__ import annotations

import html
import re
import uuid

import pytest

PAGE = {"Accept": "text/html"}


def fields_of(page):
    """The fields of the first form of a page that has an etag, as a browser sends them."""
    (form, *_) = [form for form in re.findall(r"<form.*?</form>", page, re.DOTALL) if 'name="etag"' in form]
    found = {}
    for field in re.findall(r"<input[^>]*>", form):
        name, value = re.search(r' name="(\w+)"', field), re.search(r' value="([^"]*)"', field)
        found[name[1]] = html.unescape(value[1]) if value else ""
    return found


@pytest.fixture
def ids(plain_site):
    """Ids of a tenant, a project and a key, by the name of the argument in routes."""
    project = plain_site.client.post("/v1/projects", json={"name": uuid.uuid4().hex}).json["id"]
    tenant = plain_site.client.get("/v1/me").json["tenant"]
    return {"tenant": tenant, "project": project, "key": plain_site.make_key()[1]}


@pytest.mark.parametrize(
    ("kind", "mine", "theirs", "wrong"),
    [
        ("tenant", {"max_running": "3"}, {"max_queued": "5"}, {"weight": "1001"}),
        ("project", {"keep_days": "3"}, {"repository": "https://github.com/a/b"}, {"keep_days": "soon"}),
    ],
)
def test_a_form_undoes_no_change_that_was_made_after_it_was_opened(plain_site, ids, kind, mine, theirs, wrong):
    page = f"/admin/{kind}s/{ids[kind]}"

    def load():
        return fields_of(plain_site.client.get(page).text)

    def send(fields):
        return plain_site.client.post(page, data=fields, headers=PAGE)

    opened = load()
    assert send(load() | theirs).status_code == 303
    shown_again = send(opened | mine | wrong)
    assert shown_again.status_code == 422
    for fields in (opened, fields_of(shown_again.text)):
        refused = send(fields | {name: opened[name] for name in wrong} | mine)
        assert (refused.status_code, "was changed after this form was opened" in refused.text) == (412, True)
    now = load()
    assert {name: now[name] for name in theirs} == theirs
    assert {name: now[name] for name in mine} == {name: opened[name] for name in mine}
    assert send(now | mine).status_code == 303
    assert {name: load()[name] for name in mine | theirs} == mine | theirs


def test_each_form_that_shows_stored_values_says_of_which_state_they_are(plain_site, ids):
    seen = 0
    for rule in plain_site.app.url_map.iter_rules():
        if not rule.rule.startswith("/admin") or "GET" not in rule.methods:
            continue
        path = re.sub(r"<(\w+)>", lambda match: ids[match[1]], rule.rule)
        for form in re.findall(r'<form[^>]*method="post".*?</form>', plain_site.client.get(path).text, re.DOTALL):
            if re.search(r'<input[^>]* type="text"[^>]* value="[^"]', form):
                seen += 1
                assert 'name="etag"' in form, (path, form)
    assert seen == 2
