"""The main paths where a project has 10,000 runs and 400 groups: counts agree, pages lead on, each path is short.

Forty runs are stored as a worker stores them, with ten findings each, in a separate file; the other rows of runs are
copies of them, spread over four weeks.
"""

from __future__ import annotations

import httpx
import pytest
import sqlalchemy as sa

from backprobe.rules.framework.manual import every_rule
from store.tables import run
from tests.browser.conftest import RunPages
from tests.support import samples
from tests.support.resources import require
from tests.support.site import make_site

PATIENCE = 60_000
"""Milliseconds; a condition is waited for, never a time."""

RUNS, STORED, GROUPS = 10_000, 40, 400
DAYS = 28
COPY = "insert into run ({columns}) select {values} from run r, series where r.id = 1 + n % {stored}"
SERIES = "with recursive series(n) as (select {stored} union all select n + 1 from series where n + 1 < {runs}) "

RUN_IDS, GROUP_IDS = ("table.list tbody .no", "title"), ("tr[data-group]", "data-group")
"""Where the pages of lists have ids: elements and their attribute."""

pytestmark = pytest.mark.parametrize("walk", ["light"], indirect=True)


@pytest.fixture(scope="module", autouse=True)
def assets():
    require("assets")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    from service.process.address import listen
    from service.server.http_server import Server

    site = make_site(tmp_path_factory.mktemp("home"), None)
    codes = [rule.code for rule in every_rule()]
    for number in range(STORED):
        record = samples.tutorial(path=f"jobs/{number:02}.py")
        shown = codes[number : number + GROUPS // STORED]
        site.finished(record, judgement=samples.make_judgement(*shown, record=record))
    with site.context.database.begin() as transaction:
        ago = f"'-' || (n * {DAYS * 86_400.0 / RUNS}) || ' seconds'"
        made = {
            "public_id": "'run_' || printf('%026d', n)",
            "created_at": f"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', {ago})",
        }
        columns = {column.name: f"r.{column.name}" for column in run.c if column.name != "id"} | made
        told = {"columns": ", ".join(columns), "values": ", ".join(columns.values()), "stored": STORED, "runs": RUNS}
        transaction.execute(sa.text((SERIES + COPY).format(**told).replace(":", "\\:")))
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=4)
    server.start()
    yield RunPages(f"http://127.0.0.1:{listening.getsockname()[1]}", {}, site)
    server.stop()
    site.context.close()


def collect(tab, attribute):
    """What the rows of this page and of all pages after it are, each once: the attribute of these elements."""
    selector, name = attribute
    seen = []
    while True:
        seen += tab.locator(selector).evaluate_all("(found, name) => found.map(each => each.getAttribute(name))", name)
        more = tab.locator("a[rel=next]")
        if not more.count():
            assert len(seen) == len(set(seen))
            return seen
        more.click()


def test_from_the_list_to_the_errors_of_the_last_hour_and_into_one_of_them(walk, served):
    tab = walk.tab
    tab.goto(served.page("runs"))
    tab.fill("#since", "1h")
    tab.select_option("#level", "error")
    tab.click("form[aria-label='Filter runs'] button")
    tab.wait_for_url("**/runs?*since=1h*")
    rows = tab.locator("table.list tbody tr")
    within = httpx.get(f"{served.url}/v1/runs?since=1h&level=error&limit=200").json()["items"]
    assert rows.count() in (len(within), len(within) + 1)  # one may have left the hour meanwhile
    tab.locator("table.list tbody th a").first.click()
    tab.locator("#findings-title").wait_for(timeout=PATIENCE)
    assert tab.locator("ul.findings > li").count() > 0


def test_older_runs_are_reached_page_by_page(walk, served):
    walk.tab.goto(served.page("runs?since=2d"))
    assert len(collect(walk.tab, RUN_IDS)) == pytest.approx(2 * RUNS / DAYS, abs=2)


def test_all_groups_are_reached_and_one_is_assigned_from_a_search(walk, served):
    tab = walk.tab
    tab.goto(served.page("findings"))
    assert len(collect(tab, GROUP_IDS)) == GROUPS
    tab.fill("#q", "jobs/07.py")
    tab.click("form[aria-label='Filter findings'] button")
    tab.wait_for_url("**/findings?*jobs*")
    assert tab.locator("tr[data-group]").count() == GROUPS // STORED
    tab.locator("tr[data-group] th a").first.click()
    tab.click("summary:has-text('Assign')")
    with tab.expect_navigation(timeout=PATIENCE):
        tab.click("button:has-text('Assign to me')")
    tab.goto(served.page("findings?owner=me"))
    assert tab.locator("tr[data-group]").count() == 1


def test_trends_count_each_run_and_a_day_leads_to_its_runs(walk, served):
    tab = walk.tab
    tab.goto(served.page("projects"))
    tab.locator("table.list tbody th a").first.click()
    tab.locator("nav[aria-label='Length of the window'] a:has-text('30 days')").click()
    tab.get_by_text(f"{RUNS:,} runs in the last 30 days").wait_for(timeout=PATIENCE)
    day = tab.locator("section[aria-labelledby=days-title] tbody tr").nth(3)
    count = int(day.locator("[data-label=runs]").inner_text().replace(",", ""))
    assert count == pytest.approx(RUNS / DAYS, abs=1)
    day.locator("th a").click()
    tab.wait_for_url("**/runs?*")
    assert len(collect(tab, RUN_IDS)) == count


def test_two_runs_of_the_list_are_compared(walk, served):
    tab = walk.tab
    tab.goto(served.page("runs?sort=created_at"))
    boxes = tab.locator("input[name=run]")
    for number in (0, 1):
        boxes.nth(number).check()
    tab.click("form[aria-label='Compare two runs'] button")
    tab.wait_for_url("**/compare?*")
    assert tab.locator("h1").inner_text() != ""
