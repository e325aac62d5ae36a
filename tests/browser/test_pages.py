"""Both pages in Chromium, light and dark: nothing fails, nothing leaves, nothing is cut off, all is reachable."""

from __future__ import annotations

import pytest

RUNS = ["trained", "good", "failed", "exceeded", "lost", "nan", "hostile", "long", "queued"]
PAGES = [
    "runs",
    "runs?status=lost",
    "runs?status=canceled",
    "findings?state=all",
    "findings?q=none",
    "rules/BP101",
    "problems/not-found",
    "projects",
    "projects/default?days=7",
    "projects/default",
    "projects/default?days=90",
    "audits",
    "audits/{audit}",
    "audits/{audit}?cell=0.non-leaf-grad-read",
    *RUNS,
]

BASICS = """() => {
  const faults = [];
  if (document.documentElement.lang !== 'en') faults.push('no lang');
  if (!document.title.includes('Backprobe')) faults.push('no title');
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
  for (const tag of ['header', 'main', 'footer', 'nav']) if (!document.querySelector(tag)) faults.push('no ' + tag);
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size !== ids.length) faults.push('an id twice');
  for (const e of document.querySelectorAll('a, button, summary')) {
    const name = (e.getAttribute('aria-label') || e.textContent || '').trim();
    if (!name) faults.push('a nameless link: ' + e.outerHTML.slice(0, 80));
  }
  for (const e of document.querySelectorAll('table')) if (!e.querySelector('thead th[scope=col]')) faults.push('a table without headers');
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) faults.push('a tab order that differs from the document order');
  for (const e of document.querySelectorAll('svg')) {
    const role = e.getAttribute('role'); // a group: its boxes are reached one by one
    if (!e.closest('[aria-hidden=true]') && !(role === 'img' || (role === 'group' && e.getAttribute('aria-label')))) faults.push('a drawing without a role');
  }
  let level = 0;
  for (const e of document.querySelectorAll('h1, h2, h3, h4')) {
    const now = Number(e.tagName[1]);
    if (now > level + 1) faults.push('a heading skips: ' + e.textContent.slice(0, 40));
    level = now;
  }
  for (const e of document.querySelectorAll('[style], [onclick], [onerror]')) if (!e.closest('svg, canvas, .uplot')) faults.push('inline: ' + e.outerHTML.slice(0, 80));
  return faults;
}"""

CUT_OFF = """() => {
  const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth ? ['the page scrolls sideways'] : [];
  for (const e of document.querySelectorAll('main *')) {
    if (e.closest('svg, .scroll, .graph, pre, .hidden')) continue;
    const style = getComputedStyle(e);
    if (e.scrollWidth > e.clientWidth + 1 && style.overflowX === 'hidden') wide.push('cut: ' + e.className + ' ' + e.textContent.slice(0, 40));
    const box = e.getBoundingClientRect();
    if (box.width && box.right > document.documentElement.clientWidth + 1) wide.push('outside: ' + e.className + ' ' + e.textContent.slice(0, 40));
  }
  for (const e of document.querySelectorAll('td .badge, th .badge')) {
    if (e.getBoundingClientRect().right > e.closest('td, th').getBoundingClientRect().right + 1) wide.push('over its cell: ' + e.textContent);
  }
  return wide;
}"""

CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
  const faults = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg, .hidden, .skip') || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.push(ratio.toFixed(2) + ' ' + e.className + ' ' + e.textContent.trim().slice(0, 30));
  }
  return faults;
}"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_named_and_readable(walk, served, name):
    answer = walk.tab.goto(served.page(name))
    assert answer.status == 200
    assert "\n".join(walk.tab.evaluate(BASICS)) == ""
    assert "\n".join(walk.tab.evaluate(CUT_OFF)) == ""
    assert "\n".join(walk.tab.evaluate(CONTRAST)) == ""


@pytest.mark.parametrize("width", [360, 700, 1000, 1920])
@pytest.mark.parametrize(
    "name",
    [
        "runs", "findings?state=all", "good", "long", "hostile", "good/tensors/3",
        "projects/default?days=90", "audits/{audit}",
    ],
)  # fmt: skip
def test_nothing_is_cut_off_at_any_width(walk, served, name, width):
    walk.tab.set_viewport_size({"width": width, "height": 800})
    walk.tab.goto(served.page(name))
    assert "\n".join(walk.tab.evaluate(CUT_OFF)) == ""


SIDEWAYS = """() => [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.getAttribute('aria-label') + ' ' + e.scrollWidth + ' in ' + e.clientWidth)"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "name",
    ["runs", "findings?state=all", "good", "failed", "rules", "good/tensors/3", "projects", "projects/default?days=90"],
)
def test_no_table_hides_a_column_at_the_widths_that_are_looked_at(walk, served, name, width):
    walk.tab.set_viewport_size({"width": width, "height": 800})
    walk.tab.goto(served.page(name))
    assert "\n".join(walk.tab.evaluate(SIDEWAYS)) == ""


def test_the_theme_follows_the_reader(walk, served, request):
    walk.tab.goto(served.page("good"))
    shade = walk.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shade in {"rgb(255, 255, 255)", "rgb(20, 23, 26)"}
    dark = walk.tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (shade == "rgb(20, 23, 26)") is dark


def test_from_the_list_to_a_finding_to_its_line_to_its_tensor(walk, served):
    tab = walk.tab
    tab.goto(served.page("runs"))
    tab.click(f"a[href='/runs/{served.runs['good']}']")
    tab.click(".findings .at")
    assert tab.url.endswith("#L5")
    assert tab.locator("#L5").evaluate("e => e.matches(':target')")
    tab.click("#L5 .notes a.name")
    assert tab.url.endswith("#t3")
    assert "z" in tab.locator("#t3").inner_text()
    tab.click("#t3 td a")
    assert tab.url.endswith("#L5")
    tab.click("#L7 .notes a")
    assert tab.url.endswith("#call-0")
    tab.click(".findings .name a")
    assert tab.locator("h1").inner_text() == "non-leaf-grad-read"


def test_the_keyboard_reaches_everything_and_shows_where_it_is(walk, served):
    tab = walk.tab
    tab.goto(served.page("good"))
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    reached = set()
    for _ in range(120):
        tab.keyboard.press("Tab")
        told = tab.evaluate(
            "() => { const e = document.activeElement; const s = getComputedStyle(e);"
            " return [e.tagName, e.getAttribute('href') || '', parseFloat(s.outlineWidth), s.outlineStyle]; }"
        )
        if told[0] == "BODY":
            break
        assert told[2] >= 1, told
        assert told[3] != "none", told
        reached.add(told[1])
    assert {"/runs", "#L5", "#t3", "#call-0", "/rules/BP101"} <= reached


def test_a_strangers_text_is_shown_and_does_nothing(walk, served):
    tab = walk.tab
    tab.goto(served.page("hostile"))
    text = tab.locator("main").inner_text()
    assert "<img src=x onerror=alert(1)>" in text
    assert "\\u202e" in text
    assert "{{7*7}}" in text
    assert tab.locator("main img, main script:not([data-answer]), main b").count() == 0


def test_without_javascript_every_page_answers_its_question(browser, served):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    for name in ("runs", "good", "queued"):
        tab.goto(served.page(name))
        assert tab.locator("h1").inner_text()
    tab.goto(served.page("good"))
    assert "non-leaf-grad-read" in tab.locator("#findings").inner_text()
    assert tab.locator("#tensors tbody tr").count() == 5
    assert tab.locator("#graph svg .bp-box").count() >= 5
    tab.goto(served.page("deep"))
    assert "20,145 nodes" in tab.locator("#graph").inner_text()
    assert tab.locator("#graph img").bounding_box()["height"] > 200  # it came, though the page did not wait for it
    context.close()


def test_the_first_view_is_small(walk, served):
    walk.tab.goto(served.page("good"))
    assert walk.tab.evaluate("document.querySelectorAll('*').length") <= 1500
