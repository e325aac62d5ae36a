"""The state of each invariant of a run over HTTP, and as a row of signs on the run's page."""

import pytest
import sqlalchemy as sa

from backprobe.rules import Check, Judgement, judge
from store.tables import record

CHECKS = (
    Check(name="retention", code="BP951", state="holds", checked=39, total=1040, unit="steps"),
    Check(
        name="coverage", code="BP953", state="broken", checked=40, total=40, unit="steps", findings=("BP704", "BP709")
    ),
    Check(
        name="mode",
        code="BP957",
        state="unknown",
        checked=0,
        total=40,
        unit="steps",
        why="no module acts <by> its mode",
    ),
)


def build_judgement(checks: tuple[Check, ...]) -> Judgement:
    return Judgement(findings=(), rules_judged=9, not_run=(), ruleset="rs_test", checks=checks)


@pytest.fixture
def run(site):
    return site.finished(judgement=build_judgement(CHECKS))


def forget_checks(site) -> None:
    """Leave the head of each record as a version before the column wrote it."""
    with site.context.database.begin() as transaction:
        transaction.execute(sa.update(record).values(checks=None))


def test_each_invariant_has_its_state_and_what_it_rests_on(site, run):
    told = site.client.get(f"/v1/runs/{run}/checks").json
    assert told["why"] is None
    assert told["items"] == [
        {
            "name": "retention", "code": "BP951", "state": "holds", "checked": 39, "total": 1040, "unit": "steps",
            "why": "", "findings": [],
        },
        {
            "name": "coverage", "code": "BP953", "state": "broken", "checked": 40, "total": 40, "unit": "steps",
            "why": "", "findings": ["BP704", "BP709"],
        },
        {
            "name": "mode", "code": "BP957", "state": "unknown", "checked": 0, "total": 40, "unit": "steps",
            "why": "no module acts <by> its mode", "findings": [],
        },
    ]  # fmt: skip


def test_what_the_rules_say_of_a_record_is_what_the_service_says(site, samples):
    stated = judge(samples.tutorial()).checks
    told = site.client.get(f"/v1/runs/{site.finished()}/checks").json["items"]
    assert [(row["name"], row["state"], row["checked"], row["why"]) for row in told] == [
        (check.name, check.state, check.checked, check.why) for check in stated
    ]
    assert len(told) == 8


def test_an_unchanged_answer_is_not_sent_again(site, run):
    first = site.client.get(f"/v1/runs/{run}/checks")
    again = site.client.get(f"/v1/runs/{run}/checks", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ({"judgement": build_judgement(())}, "No invariant is among the rules that judged the run."),
        ({"judgement": None}, "The run was not judged."),
    ],
)
def test_a_run_without_checks_says_why(site, ending, why):
    told = site.client.get(f"/v1/runs/{site.finished(**ending)}/checks").json
    assert told == {"items": [], "why": why}


def test_a_run_that_an_older_version_judged_says_so_and_its_page_too(site, run):
    forget_checks(site)
    why = "The run was judged by a version that checked no invariants."
    assert site.client.get(f"/v1/runs/{run}/checks").json == {"items": [], "why": why}
    page = site.client.get(f"/runs/{run}").text
    assert why in page
    assert "1,040" not in page


def test_the_page_of_a_deleted_record_says_that_it_was_deleted(site, run):
    assert site.client.delete(f"/v1/runs/{run}").status_code == 204
    assert "The record of the run was deleted." in site.client.get(f"/runs/{run}").text


def test_a_run_that_waits_has_no_checks_yet(site):
    run = site.submit()
    assert site.client.get(f"/v1/runs/{run}/checks").json == {"items": [], "why": "The run has not ended."}
    assert "What was checked" not in site.client.get(f"/runs/{run}").text


def test_the_page_says_below_no_findings_what_holds_is_broken_and_was_not_checked(site, run):
    page = site.client.get(f"/runs/{run}").text
    below = page[page.index("No findings") : page.index("</section>", page.index("What was checked"))]
    words = " ".join(below.replace("<", " <").split())
    for said in ("retention", "</svg>holds", "in 39 of 1,040 steps", "</svg>broken", "</svg>not checked"):
        assert said in words.replace("</svg> ", "</svg>"), said
    assert '<a href="/rules/BP704">BP704</a>' in below
    assert '<a href="/rules/BP709">BP709</a>' in below
    assert "no module acts &lt;by&gt; its mode" in below


def test_the_page_shows_them_below_findings_too(site):
    page = site.client.get(f"/runs/{site.finished()}").text
    assert page.index('class="findings') < page.index("What was checked") < page.index('id="source"')
