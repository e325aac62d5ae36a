"""Trends of a project: the same numbers as the list of runs and the inbox have, on the page and in the API."""

from __future__ import annotations

import datetime
import html
import re
import uuid
from urllib.parse import quote

import pytest

from backprobe.rules import judge
from store.tables import finding_group, run
from store.tables import project as projects

PAGE = {"Accept": "text/html"}
TODAY = datetime.datetime.now(datetime.UTC).date


def make_project(site, name="p", headers=None):
    """A project whose name no other test has; projects stay when a test is over."""
    body = {"name": f"{name} {uuid.uuid4().hex}"}
    return site.client.post("/v1/projects", json=body, headers=headers or {}).json


def trends(site, project="prj_default", headers=None, **days):
    answer = site.client.get(f"/v1/projects/{project}/trends", query_string=days, headers=headers or {})
    assert answer.status_code == 200, answer.text
    return answer.json


def list_runs(site, **filters):
    return site.client.get("/v1/runs", query_string={"limit": 1000, **filters}).json["items"]


def groups(site, **filters):
    return site.client.get("/v1/finding-groups", query_string={"include": "days", **filters}).json["items"]


def change(site, group, **body):
    tag = site.client.get(group["links"]["self"]).headers["ETag"]
    answer = site.client.patch(group["links"]["self"], json=body, headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text


def back(site, public_id, days):
    """Move a run so many days back; the time at which it was created."""
    at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with site.context.database.begin() as transaction:
        transaction.execute(run.update().where(run.c.public_id == public_id).values(created_at=text))
    return text


@pytest.fixture
def busy(site, samples):
    """A project with runs of four outcomes on three days, a trial, and a run of another project."""
    good, failed = site.finished(), site.finished(status="failed", exit_code=1)
    site.finished(status="lost", exit_code=None)
    old = site.finished(judgement=judge(samples.tutorial()))
    site.finished(body={"project": make_project(site)["id"]})
    fixable = site.finished(judgement=samples.judged_with_fix(samples.tutorial()))
    (found,) = site.client.get(f"/v1/runs/{fixable}/findings").json["items"]
    trial = site.client.post(f"/v1/findings/{found['id']}/trials", json={}).json["id"]
    site.finish(trial, samples.tutorial())
    site.submit()
    back(site, failed, 2)
    back(site, old, 29)
    back(site, good, 45)
    return site


def test_the_counts_are_those_of_the_list_of_runs(busy):
    told = trends(busy)
    assert [day["day"] for day in told["days"]] == [
        (TODAY() - datetime.timedelta(days=ago)).isoformat() for ago in range(29, -1, -1)
    ]
    assert sum(sum(day["runs"].values()) for day in told["days"]) == 5
    for day in told["days"]:
        before = datetime.date.fromisoformat(day["day"]) - datetime.timedelta(days=1)
        after = datetime.date.fromisoformat(day["day"]) + datetime.timedelta(days=1)
        window = {"created.gt": f"{before}T23:59:59.999Z", "created.lt": f"{after}T00:00:00.000Z"}
        for status, count in day["runs"].items():
            assert len(list_runs(busy, project="prj_default", status=status, **window)) == count, (day["day"], status)
        its = list_runs(busy, project="prj_default", **window)
        for level, count in day["findings"].items():
            assert sum(run_["findings"][level] for run_ in its) == count, (day["day"], level)
    assert {(day["findings"]["warning"], day["runs"]["failed"]) for day in told["days"]} >= {(1, 1), (0, 0)}


def test_rules_are_counted_as_the_inbox_counts_their_groups(busy):
    told = trends(busy, **{"from": (TODAY() - datetime.timedelta(days=13)).isoformat()})
    mine = [group for group in groups(busy) if group["project"] == "prj_default"]
    assert len(told["rules"]) == len({group["rule"] for group in mine}) == 1
    for rule in told["rules"]:
        its = [group for group in mine if group["rule"] == rule["rule"]]
        assert rule["shown"] == sum(group["runs"] for group in its) == sum(day["runs"] for day in rule["days"]) == 5
        for place, day in enumerate(rule["days"]):
            assert day["runs"] == sum(group["days"][place]["runs"] for group in its)
        assert rule["level"] == "warning"


def test_groups_are_new_fixed_and_regressed_as_the_inbox_says(site):
    def today(project="prj_default"):
        return trends(site, project)["days"][-1]["groups"]

    site.finished()
    assert today() == {"new": 1, "fixed": 0, "regressed": 0}
    (group,) = groups(site)
    change(site, group, state="fixed")
    assert today() == {"new": 1, "fixed": len(groups(site, state="fixed")), "regressed": 0}
    site.finished()
    assert len(groups(site, state="open", returned="true")) == 1
    assert today() == {"new": 1, "fixed": 0, "regressed": 1}
    with site.context.database.begin() as transaction:
        transaction.execute(finding_group.update().values(first_seen_at="2020-05-03T12:00:00.000Z"))
    assert today() == {"new": 0, "fixed": 0, "regressed": 1}
    assert trends(site, **{"from": "2020-05-03", "to": "2020-05-03"})["days"][0]["groups"]["new"] == 1


COUNT = re.compile(
    r'<th scope="row"[^>]*>(?:(?!</th>).)*?<a href="([^"]+)">([^<]+)</a>.*?<td class="number" data-label="([^"]+)">([\d,]+)<',
    re.DOTALL,
)


def counts_with_a_list(text):
    """Heading, word, address and number of each count in the tables of the page that leads to a list."""
    sections = re.findall(r'<h2 id="[^"]+">([^<]+)</h2>(.*?)</section>', text, re.DOTALL)
    return [
        (heading, word, html.unescape(address), int(total.replace(",", "")))
        for heading, table in sections
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        for address, word, _label, total in COUNT.findall(row)
    ]


def count_list(site, heading, word, address):
    """The same number, from the list at the address: its page has each item, the API what is added up."""
    path, _, filters = address.partition("?")
    page = site.client.get(address, headers=PAGE)
    assert page.status_code == 200, address
    if path == "/findings":
        shown = set(re.findall(r'data-group="([^"]+)"', page.text))
        if not heading.startswith("Rules"):
            return len(shown)
        its = site.client.get(f"/v1/finding-groups?{filters.replace('state=all&', '')}").json["items"]
        assert {group["id"] for group in its} == shown
        return sum(group["runs"] for group in its)
    items = site.client.get(f"/v1/runs?{filters}&limit=1000").json["items"]
    assert len(set(re.findall(r'<a href="/runs/(run_\w+)">', page.text))) == len(items), address
    return sum(run_["findings"][word] for run_ in items) if heading == "Findings by level" else len(items)


@pytest.mark.parametrize(("state", "ago"), [("open", 20), ("fixed", 400), ("regressed", 20)])
@pytest.mark.parametrize(("days", "runs"), [(7, 4), (30, 5), (90, 6)])
def test_each_count_that_leads_to_a_list_is_the_number_of_the_list(busy, days, runs, ago, state):
    time = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=ago)).isoformat(timespec="milliseconds")
    time = time.replace("+00:00", "Z")
    states = {
        "open": {},
        "fixed": {"state": "fixed", "state_by": "user:ann", "state_at": time},
        "regressed": {"state_by": "run_1", "state_at": time},
    }
    with busy.context.database.begin() as transaction:
        transaction.execute(finding_group.update().values(first_seen_at=time, **states[state]))
    text = busy.client.get(f"/projects/default?days={days}", headers=PAGE).text
    counts = counts_with_a_list(text)
    numbers = {(heading, word): total for heading, word, _, total in counts}
    assert numbers["Runs by outcome", "all"] == runs
    assert {heading for heading, *_ in counts} >= {"Findings by level", "Rules that runs showed most", "Day by day"}
    assert sum(heading == "Day by day" for heading, *_ in counts) == days
    for heading, word, address, total in counts:
        assert count_list(busy, heading, word, address) == total, (heading, word)
    assert f"{runs} runs in the last {days} days" in text


def test_a_project_is_found_by_its_name_and_from_where_it_is_named(site):
    made = make_project(site, "Vision 2")
    run_id = site.finished(body={"project": made["id"]})
    assert site.client.get(f"/projects/{quote(made['name'])}").text == site.client.get(f"/projects/{made['id']}").text
    (group,) = groups(site)
    for path in ("/projects", f"/runs/{run_id}", "/findings", f"/findings/{group['id']}"):
        assert f'href="/projects/{made["id"]}"' in site.client.get(path, headers=PAGE).text, path
    assert 'href="/projects"' in site.client.get("/runs", headers=PAGE).text
    assert "No run of these days showed a finding." in site.client.get("/projects/default").text


def test_a_wrong_window_and_an_unknown_project_are_told(plain_site):
    assert plain_site.client.get("/projects/default?days=31").status_code == 422
    assert plain_site.client.get("/projects/default?weeks=1").status_code == 422
    assert plain_site.client.get("/projects/none%20such").status_code == 404
    path = "/v1/projects/prj_default/trends"
    assert plain_site.client.get(f"{path}?from=2020-01-01&to=2026-01-01").json["code"] == "too-much-asked"
    assert plain_site.client.get(f"{path}?from=2026-01-02&to=2026-01-01").json["days"] == []


def test_a_strangers_name_is_no_markup(site):
    bad = "<img src=x onerror=alert(1)>"
    project = make_project(site, bad)["id"]
    for path in ("/projects", f"/projects/{project}"):
        text = site.client.get(path).text
        assert "<img" not in text
        assert html.escape(bad) in text
    with site.context.database.begin() as transaction:
        named = projects.update().where(projects.c.public_id == project)
        transaction.execute(named.values(name="a\u202eb\x1b"))
    for path in ("/projects", f"/projects/{project}"):
        text = site.client.get(path).text
        assert not {"\u202e", "\x1b"} & set(text)
        assert "a\\u202eb" in text
    with site.context.database.begin() as transaction:
        transaction.execute(named.values(name=f"old {project}"))


def test_nobody_sees_the_trends_of_another_tenant_or_project(site, two):
    made, another = make_project(site, headers=two[0]), make_project(site, headers=two[0])
    mine, other = made["id"], another["id"]
    assert trends(site, mine, headers=two[0])["name"] == made["name"]
    for path in (f"/v1/projects/{mine}/trends", f"/projects/{mine}", f"/projects/{quote(made['name'])}"):
        assert site.client.get(path, headers=two[0]).status_code == 200
        assert site.client.get(path, headers=two[1]).status_code == 404
    assert mine not in site.client.get("/projects", headers=two[1]).text
    limited = site.client.post("/v1/keys", json={"name": "k", "scopes": ["read"], "project": mine}, headers=two[0])
    key = {"Authorization": f"Bearer {limited.json['secret']}"}
    paths = ((f"/projects/{mine}", 200), (f"/projects/{other}", 404), (f"/projects/{quote(another['name'])}", 404))
    for path, status in paths:
        assert site.client.get(path, headers=key).status_code == status, path
