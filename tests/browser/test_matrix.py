"""The matrix of an audit of 500 programs by 60 rules: scrolled both ways, walked by keys, opened, and without scripts."""

from __future__ import annotations

import gzip

import pytest

from backprobe.rules.framework.manual import every_rule
from tests.support import samples
from tests.support.resources import ROOT, require

PATIENCE = 60_000
"""Milliseconds; a condition is waited for, never a time."""

PROGRAMS, RULES, RUNS = 500, 60, 20
MOST_SCRIPT = 60 << 10
MOST_JSON = 250 << 10
MOST_ELEMENTS = 1_500

AXE = """() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(' | ')))"""


@pytest.fixture(scope="module")
def large(served):
    """The address of an audit of so many programs and rules; each of its runs shows three rules, one of them twice."""
    from store.audits.judging import settle

    site, codes = served.site, [rule.code for rule in every_rule()][:RULES]
    runs = []
    for number in range(RUNS):
        shown = codes[3 * number : 3 * number + 3]
        run = site.submit(priority=0)  # before the run of `served` that stays queued
        site.finish(
            run, samples.tutorial(), judgement=samples.make_judgement(*shown, shown[0], message=samples.HOSTILE)
        )
        runs.append(run)
    items = [{"custom_id": f"jobs/{n:03}.py", "run": runs[n % RUNS]} for n in range(PROGRAMS)]
    audit = site.client.post("/v1/audits", json={"name": "large", "items": items}).json["id"]
    settle(site.context.database)
    assert site.client.get(f"/v1/audits/{audit}").json["items"]["total"] == PROGRAMS
    return f"{served.url}/audits/{audit}"


@pytest.fixture
def grid(walk, large):
    """The page with its matrix drawn; the tab."""
    require("assets")
    walk.tab.goto(large)
    walk.tab.wait_for_selector(".matrix td[id]", timeout=PATIENCE)
    return walk.tab


def current_cell(tab):
    """The cell that the keys stand on: its row and column, its words, and whether it is in sight as a whole."""
    tab.wait_for_selector(".matrix td.here", timeout=PATIENCE)
    return tab.evaluate("""() => {
      const cell = document.getElementById(document.querySelector('.matrix').getAttribute('aria-activedescendant'));
      const shown = (e) => { const [a, b] = [e.getBoundingClientRect(), document.querySelector('.matrix-room').getBoundingClientRect()];
        return a.right <= b.right + 1 && a.bottom <= b.bottom + 1 && a.left >= b.left + 149 && a.top >= b.top + 61; };
      return [Number(cell.parentElement.getAttribute('aria-rowindex')), Number(cell.getAttribute('aria-colindex')), cell.innerText.trim(), shown(cell)];
    }""")


def test_only_what_is_in_sight_is_in_the_document_and_all_can_be_reached(grid):
    table = grid.locator(".matrix")
    assert (table.get_attribute("aria-rowcount"), table.get_attribute("aria-colcount")) == ("501", "61")
    assert grid.locator("#matrix-table").count() == 0
    assert grid.evaluate("document.querySelectorAll('*').length") <= MOST_ELEMENTS
    grid.evaluate("(e => e.scrollTo(e.scrollWidth, e.scrollHeight))(document.querySelector('.matrix-room'))")
    grid.wait_for_selector("tr[aria-rowindex='501'] td[aria-colindex='61']", timeout=PATIENCE)
    assert grid.evaluate("document.querySelectorAll('*').length") <= MOST_ELEMENTS
    assert grid.locator(".matrix td[id]").count() < 700
    head = grid.locator(".matrix thead th").first.bounding_box()
    name = grid.locator("tr[aria-rowindex='501'] th").bounding_box()
    room = grid.locator(".matrix-room").bounding_box()
    assert abs(head["y"] - room["y"]) <= 1  # the head and the names stay
    assert abs(name["x"] - room["x"]) <= 1


def test_keys_walk_over_the_cells_and_enter_tells_the_findings(grid):
    grid.locator(".matrix").focus()
    grid.keyboard.press("ArrowDown")
    assert current_cell(grid)[:2] == [2, 2]
    grid.keyboard.press("Control+End")
    assert current_cell(grid)[:2] == [501, 61]
    assert current_cell(grid)[3]
    grid.keyboard.press("PageUp")
    assert current_cell(grid)[0] < 501
    grid.keyboard.press("Control+Home")
    grid.keyboard.press("ArrowDown")
    grid.keyboard.press("ArrowRight")
    assert current_cell(grid)[:2] == [3, 3]
    assert current_cell(grid)[3]
    grid.keyboard.press("Control+Home")
    found = None
    for _ in range(RULES):
        if current_cell(grid)[2]:
            found = current_cell(grid)
            break
        grid.keyboard.press("ArrowRight")
    assert found is not None
    grid.keyboard.press("Enter")
    said = grid.locator(".matrix-said")
    said.locator("li").first.wait_for(timeout=PATIENCE)
    assert said.locator("li").count() == int(found[2].split()[1])
    text = said.inner_text()
    assert "<img src=x onerror=alert(1)>" in text
    assert "\\u202e" in text
    assert "snippet.py:5" in text
    assert grid.locator(".matrix-said img").count() == 0
    link = said.locator("li a").first.get_attribute("href")
    assert "#finding-" in link
    address = grid.url
    assert "cell=" in address
    grid.goto(address)
    grid.locator(".matrix-said li").first.wait_for(timeout=PATIENCE)
    assert grid.locator(".matrix-said h3").inner_text() in text
    assert grid.locator("#cell").count() == 0  # the server's answer to the same address
    grid.goto(f"{grid.url.partition('/audits')[0]}{link}")
    assert grid.locator(f"#{link.partition('#')[2]}").count() == 1


def test_another_cell_never_shows_the_findings_of_the_one_before(grid):
    grid.locator(".matrix td[data-open]").first.click()
    grid.locator(".matrix-said li").first.wait_for(timeout=PATIENCE)
    grid.locator(".matrix td[id]:not([data-open])").first.click()
    grid.get_by_text("The rule passed.").wait_for(timeout=PATIENCE)
    assert grid.locator(".matrix-said li").count() == 0


def test_filters_narrow_the_matrix(walk, large):
    require("assets")
    tab = walk.tab
    tab.goto(large)
    tab.fill("#file", "jobs/00")
    tab.select_option("#level", "error")
    tab.click("form[aria-label='Filter the matrix'] button")
    tab.wait_for_selector(".matrix td[id]", timeout=PATIENCE)
    rows = int(tab.locator(".matrix").get_attribute("aria-rowcount"))
    assert 1 < rows <= 11
    assert tab.locator(".matrix .mark-error").count() >= rows - 1


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_the_matrix_fits_its_page_and_axe_finds_nothing_serious(walk, large, width):
    from axe_playwright_python.base import AXE_SCRIPT

    require("assets")
    walk.tab.set_viewport_size({"width": width, "height": 800})
    walk.tab.goto(large)
    walk.tab.wait_for_selector(".matrix td[id]", timeout=PATIENCE)
    wide, seen = walk.tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= seen
    walk.tab.locator(".matrix td[data-open]").first.click()
    walk.tab.locator(".matrix-said li").first.wait_for(timeout=PATIENCE)
    walk.tab.evaluate(AXE_SCRIPT)
    assert walk.tab.evaluate(AXE) == []


@pytest.mark.parametrize("walk", ["light"], indirect=True)
def test_the_budgets_hold(walk, large):
    require("assets")
    dist = ROOT / "service/dashboard/static/dist"
    scripts = [*dist.glob("pages-*.js"), *dist.glob("matrix-*.js")]
    assert len(scripts) == 2
    assert sum(len(gzip.compress(script.read_bytes())) for script in scripts) <= MOST_SCRIPT
    with walk.tab.expect_response(lambda answer: "/matrix?" in answer.url) as waiting:
        walk.tab.goto(large)
    assert len(gzip.compress(waiting.value.body())) <= MOST_JSON


def test_without_scripts_all_programs_are_reached_page_by_page_and_a_cell_tells_its_findings(browser, large):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(large)
    names, pages = set(), 0
    while True:
        pages += 1
        names |= set(tab.locator(".matrix-plain tbody th a").all_inner_texts())
        more = tab.locator("a[rel=next]")
        if not more.count():
            break
        more.click()
    assert (len(names), pages) == (PROGRAMS, 5)
    tab.goto(large)
    tab.locator(".matrix-plain td a").first.click()
    assert "<img src=x onerror=alert(1)>" in tab.locator("#cell").inner_text()
    assert tab.locator("#cell img").count() == 0
    context.close()
