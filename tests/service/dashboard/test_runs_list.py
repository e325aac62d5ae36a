"""The filters of the list of runs, as a person uses them: views, labels, projects by name, and what a typo does."""

from __future__ import annotations

import html
import re

import pytest

from service.dashboard.pages import VIEWS

PAGE = {"Accept": "text/html"}


def runs_of(answer):
    assert answer.status_code == 200, answer.text
    return re.findall(r'<a href="/runs/(run_\w+)">', answer.text)


def test_a_filter_takes_what_people_type(site):
    other = site.client.post("/v1/projects", json={"name": "Vision 2"}).json["id"]
    here, there = site.submit(labels={"team": "a=b", "pr": "12"}), site.submit(project=other)
    for typed, expected in {
        "project=default": [here],
        "project=Vision+2": [there],
        f"project={other}": [there],
        "since=+1h+": [there, here],
        "sort=created_at": [here, there],
        "level=&rule=&q=": [there, here],
        "label=team%3Da%3Db": [here],
        "label=+pr+%3D+12&project=default": [here],
        "label=pr%3D13&label.pr=12": [],
    }.items():
        assert runs_of(site.client.get(f"/runs?{typed}", follow_redirects=True)) == expected, typed
    moved = site.client.get("/runs?label=pr%3D12&status=queued")
    assert (moved.status_code, moved.location) == (302, "/runs?status=queued&label.pr=12")
    assert 'value="pr=12"' in site.client.get(moved.location).text
    first = site.client.get("/runs?sort=created_at&limit=1")
    (more,) = re.findall(r'<a href="([^"]+)" rel="next">Newer runs', first.text)
    assert [runs_of(first), runs_of(site.client.get(html.unescape(more)))] == [[here], [there]]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("since=yesterday", "since: Write a number and a unit: 30m, 1h, 7d or 2w."),
        ("created.gt=monday", "created.gt: A time is ISO 8601"),
        ("label=vision", "label: Write a label as NAME=VALUE"),
        ("stauts=failed", "stauts: There is no such parameter. Did you mean status?"),
        ("level=fatal", "level: It should be"),
    ],
)
def test_a_typo_keeps_the_form_and_says_what_to_write(plain_site, typed, says):
    answer = plain_site.client.get(f"/runs?{typed}&q=kept+words", headers=PAGE)
    text = html.unescape(re.sub(r"</?(strong|code)>", "", answer.text))
    assert answer.status_code == 422
    assert says in text
    assert 'value="kept words"' in answer.text
    name, _, value = typed.partition("=")
    assert name == "stauts" or f'value="{value}"' in answer.text or f"<option selected>{value}</option>" in answer.text
    assert "No run matches" not in answer.text
    assert plain_site.client.get(f"/runs?{typed}").json["code"] == "invalid-request"


def test_each_view_is_a_link_that_shows_which_it_is(plain_site):
    links = dict(re.findall(r'<a href="(/runs\?[^"]+)"[^>]*>([^<]+)</a>', plain_site.client.get("/runs").text))
    for text, _filters in VIEWS:
        (address,) = [html.unescape(link) for link, shown in links.items() if shown == text]
        shown = plain_site.client.get(address)
        assert shown.status_code == 200
        assert f"aria-current=true>{text}</a>" in shown.text
