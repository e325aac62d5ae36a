"""A run's page says what can be done with the run, and that a job is silent."""

from __future__ import annotations

import datetime
import html

import pytest

from service.dashboard import words
from service.dashboard.words import SILENT_MINUTES
from store.database.ids import new_id


def test_a_run_leads_to_its_program_and_names_project_labels_and_pin(site):
    run = site.finished(body={"labels": {"pr": "12"}})
    told = site.client.get(f"/v1/runs/{run}")
    site.client.patch(f"/v1/runs/{run}", json={"pinned": True}, headers={"If-Match": told.headers["ETag"]})
    text = site.client.get(f"/runs/{run}").text
    assert f'<a href="/play/{told.json["snippet"]}?run={run}">' in text
    assert '<a href="/projects/prj_default">default</a>' in text
    assert "pr=12" in text
    assert "kept until it is unpinned" in text


def test_a_label_of_a_stranger_stays_in_its_attribute(site):
    run = site.submit(labels={"a": '"><img src=x>'})
    text = site.client.get(f"/runs/{run}").text
    assert "<img src=x>" not in text
    assert '"><img src=x>' in html.unescape(text)


@pytest.mark.parametrize(("minutes", "is_silent"), [(SILENT_MINUTES - 1, False), (SILENT_MINUTES, True)])
def test_a_watched_job_that_is_silent_is_said_to_be(site, monkeypatch, minutes, is_silent):
    run = site.client.put(f"/v1/runs/{new_id('run')}", json={}).json
    later = words.parse_time(run["recorder"]["heard_at"]) + datetime.timedelta(minutes=minutes, seconds=20)
    monkeypatch.setattr(words, "datetime", Clock(later))
    assert (f"No heartbeat for {minutes} minutes" in site.client.get(f"/runs/{run['id']}").text) is is_silent


class Clock:
    """What the pages have for the module `datetime`, at another time."""

    def __init__(self, now):
        self.datetime, self.UTC, self._now = self, datetime.UTC, now

    def now(self, _zone):
        return self._now

    def fromisoformat(self, text):
        return datetime.datetime.fromisoformat(text)
