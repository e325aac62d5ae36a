"""The inbox: groups by state, filters as people type them, paging, and one group at its newest run."""

from __future__ import annotations

import dataclasses
import datetime
import html
import re
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from backprobe.rules.framework.finding import with_fingerprints
from store.tables import project

GROUP = re.compile(r'value="(fg_[0-9A-Z]+)"')


def list_groups(site, **filters):
    """Ids of the groups on a page."""
    answer = site.client.get("/findings", query_string=filters, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return GROUP.findall(answer.text)


def show(site, samples, count, message=None):
    """A run with so many findings on different lines; the ids of all groups."""
    record = samples.tutorial()
    judged = samples.judged_with_fix(record)
    (found,) = judged.findings
    found = msgspec.structs.replace(found, message=message or found.message)
    place = found.location
    several = [
        msgspec.structs.replace(found, location=msgspec.structs.replace(place, text=f"{place.text}  # {n}"))
        for n in range(count)
    ]
    run = site.finished(
        record, body={"labels": {"commit": "9f2c1ab"}}, judgement=dataclasses.replace(judged, findings=with_fingerprints(several))
    )  # fmt: skip
    return run, [group["id"] for group in site.client.get("/v1/finding-groups").json["items"]]


def change(site, group, **body):
    tag = site.client.get(f"/v1/finding-groups/{group}").headers["ETag"]
    answer = site.client.patch(f"/v1/finding-groups/{group}", json=body, headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text


def test_each_state_lists_its_groups_and_the_page_begins_with_what_is_open(site, samples):
    _, ids = show(site, samples, 5)
    muted, acknowledged, fixed, owned, fresh = ids
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    change(site, muted, state="suppressed", reason="by design", muted_until=until.isoformat())
    change(site, acknowledged, state="acknowledged")
    change(site, fixed, state="fixed")
    change(site, owned, owner="local")
    assert set(list_groups(site)) == set(list_groups(site, state="new")) == {owned, fresh}
    for word, only in (("muted", muted), ("Suppressed", muted), ("ack", acknowledged), ("fixed", fixed)):
        assert list_groups(site, state=word) == [only], word
    assert set(list_groups(site, state="all")) == set(ids)
    assert list_groups(site, owner="me") == list_groups(site, owner="local") == [owned]
    show(site, samples, 5)
    assert list_groups(site, state="regressed") == [fixed]
    text = site.client.get("/findings?state=muted").text
    assert f"until {until.date()}" in text
    assert "Reason: by design" in text
    assert 'aria-label="2 runs in 14 days' in text
    assert "9f2c1ab" in text


def test_filters_take_what_people_type(site, samples):
    show(site, samples, 1)
    for typed in (
        {"rule": "bp101"}, {"rule": "Non_leaf_grad_read, BP102"}, {"level": "Warnings"}, {"project": "default"},
        {"since": "7d"}, {"since": "2 weeks"}, {"since": "Yesterday"}, {"since": "last week"}, {"since": "2020-05-03"},
        {"q": "SNIPPET leaf"}, {"q": "bp101"}, {"q": "  "},
    ):  # fmt: skip
        assert len(list_groups(site, **typed)) == 1, typed
    for typed in (
        {"rule": "BP102"},
        {"level": "error"},
        {"q": "leaf nowhere"},
        {"since": "2100-01-01"},
        {"owner": "ann"},
    ):
        assert list_groups(site, **typed) == [], typed


@pytest.mark.parametrize(
    ("field", "typed", "hint"),
    [
        ("rule", "nope", "such as BP101"),
        ("level", "bad", "error, warning, note"),
        ("project", "<b>", "its name or its id"),
        ("since", "99999999999d", "such as 12h, 7d"),
        ("state", "gone", "open, new"),
        ("owner", "a" * 201, "at most 200"),
    ],
)
def test_a_filter_that_cannot_be_read_keeps_the_form_and_says_what_to_type(plain_site, field, typed, hint):
    answer = plain_site.client.get("/findings", query_string={"q": "what I typed", field: typed})
    text = html.unescape(answer.text)
    assert answer.status_code == 422
    assert 'role="alert"' in text
    assert hint in text
    assert f'name="{field}"' in text
    assert f'value="{typed}"' in text
    assert 'value="what I typed"' in text


def test_pages_lead_through_all_groups_and_keep_the_filters(site, samples):
    _, ids = show(site, samples, 60)
    path, seen = "/findings?rule=BP101", []
    while path:
        text = site.client.get(path).text
        seen += GROUP.findall(text)
        found = re.search(r'<a href="([^"]+)" rel="next">', text)
        path = html.unescape(found[1]) if found else None
        assert path is None or "rule=BP101" in path
    assert (len(seen), set(seen)) == (60, set(ids))


def test_a_group_opens_at_its_newest_run_with_line_fix_and_trial(site, samples):
    show(site, samples, 1)
    run, (group,) = show(site, samples, 1)
    text = site.client.get(f"/findings/{group}").text
    assert f'href="/runs/{run}#finding-f_' in text
    assert f'href="/runs/{run}?file=snippet.py' in text
    assert "z.retain_grad()" in text
    assert "No fix was tried." in text
    (finding,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    trial = site.client.post(f"/v1/findings/{finding['id']}/trials", json={"fix": 1}).json["id"]
    text = site.client.get(f"/findings/{group}").text
    assert f'<a href="/runs/{trial}">Trial of fix 2</a>: not ended' in text


def test_the_text_of_a_stranger_is_text(site, samples):
    _, (group,) = show(site, samples, 1, message=samples.HOSTILE)
    change(site, group, state="acknowledged", reason="<b>known</b>", owner='"><img src=x>')
    for path in ("/findings?state=all", f"/findings/{group}"):
        text = site.client.get(path).text
        for forbidden in ("<img", "<b>", "\u202e", "\x1b"):
            assert forbidden not in text, (path, forbidden)


@pytest.fixture
def issue(site, samples):
    """`issue(message)`: title and body of the form to which the page of a group with this message leads."""

    def follow_link(**fields):
        _, (group,) = show(site, samples, 1, **fields)
        page = f"/findings/{group}"
        assert "New issue on GitHub" not in site.client.get(page).text
        shown = site.client.get("/admin/projects/prj_default").text
        form = {"name": "default", "etag": html.unescape(re.search(r'name="etag" value="([^"]+)"', shown)[1])}
        saved = site.client.post(
            "/admin/projects/prj_default", data=form | {"repository": "https://github.com/owner/repo/"}
        )
        assert saved.status_code == 303
        (link,) = re.findall(r'href="(https://github.com/[^"]+)"', site.client.get(page).text)
        parts = urlsplit(html.unescape(link))
        assert (parts.path, len(link) < 8192) == ("/owner/repo/issues/new", True)
        asked = dict(parse_qsl(parts.query, strict_parsing=True))
        assert list(asked) == ["title", "body"]
        return asked["title"], asked["body"], f"http://localhost{page}"

    yield follow_link
    with site.context.database.begin() as transaction:
        transaction.execute(project.update().values(repository=None))


def test_a_group_leads_to_a_new_issue_that_is_filled_in(issue):
    title, body, page = issue(message="`w` is not a leaf.\nMove first.")
    assert title == "non-leaf-grad-read in snippet.py:5"
    assert body.startswith("```text\n`w` is not a leaf.\nMove first.\n```\n\n* rule: `non-leaf-grad-read` (")
    assert body.endswith(f"* finding: {page}\n")
    assert "* place: `snippet.py:5`\n* runs: 1, first seen 20" in body


def test_the_text_of_a_stranger_stays_in_its_block_of_an_issue(issue):
    _, body, _ = issue(message="```\n@everyone \u202e [x](https://evil.test)\n````\n" + "\N{GRINNING FACE}" * 1500)
    opening, _, rest = body.partition("\n")
    assert opening == "`````text"
    assert "@everyone \\u202e [x]" in rest.split("\n`````\n")[0]
    assert "@everyone" not in rest.split("\n`````\n", 1)[1]


def test_who_may_only_read_is_shown_no_actions(site, samples):
    _, (group,) = show(site, samples, 1)
    secret = site.client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}).json["secret"]
    for path in ("/findings", f"/findings/{group}"):
        assert "data-island" in site.client.get(path).text
        text = site.client.get(path, headers={"Authorization": f"Bearer {secret}"}).text
        assert group in text
        assert "data-island" not in text
