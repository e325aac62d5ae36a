"""The panes that scripts fill: one selection for all, kept in the address; budgets; axe; the report in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import pytest

from tests.support import samples
from tests.support.resources import ROOT, require
from tests.support.waiting import until

PATIENCE = 60_000
"""Milliseconds; a condition is waited for, never a time."""

MOST_SCRIPT = 60 << 10
MOST_JSON = 250 << 10
MOST_ELEMENTS = 1500
"""Budgets of the first view."""

AXE = """() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(' | ')))"""


ONE_THEME = pytest.mark.parametrize("walk", ["light"], indirect=True)
"""What does not look at colours; themes double the time."""


@pytest.fixture(scope="module", autouse=True)
def assets():
    require("assets")


@pytest.fixture
def drawn(walk, served):
    """A run's page with all of its panes drawn; the tab."""

    def open_page(name="good", query=""):
        walk.tab.goto(served.page(name) + query)
        walk.tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
        walk.tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
        return walk.tab

    return open_page


def chosen(tab):
    return sorted(tab.evaluate("[...document.querySelectorAll('.chosen')].map(e => e.id).filter(Boolean)"))


@ONE_THEME
def test_one_selection_marks_all_panes_and_comes_back_from_its_address(drawn):
    tab = drawn()
    box = tab.locator("#graph [data-box]", has_text="AddBackward0").first
    name = box.get_attribute("data-box")
    box.click()
    tab.wait_for_selector("#t3.chosen", timeout=PATIENCE)
    assert {"L5", "t3"} <= set(chosen(tab))
    assert tab.locator(f'#graph [data-box="{name}"]').get_attribute("aria-pressed") == "true"
    tab.reload()
    tab.wait_for_selector("#t3.chosen", timeout=PATIENCE)
    tab.wait_for_selector(f'#graph [data-box="{name}"][aria-pressed=true]', timeout=PATIENCE)


@ONE_THEME
def test_a_row_of_the_table_marks_its_line_and_going_back_undoes_it(drawn):
    tab = drawn()
    tab.click("#t3 td.tight >> nth=0")
    tab.wait_for_selector("#t3.chosen", timeout=PATIENCE)
    assert "t=3" in tab.url
    tab.go_back()
    tab.wait_for_selector(".chosen", state="detached", timeout=PATIENCE)


@ONE_THEME
def test_keys_walk_over_findings_and_open_their_list(drawn):
    tab = drawn()
    tab.keyboard.press("j")
    tab.wait_for_selector(".findings > .chosen", timeout=PATIENCE)
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".chosen", state="detached", timeout=PATIENCE)
    tab.keyboard.press("?")
    tab.wait_for_selector("dialog[open]", timeout=PATIENCE)
    tab.keyboard.press("Escape")


@ONE_THEME
def test_the_graph_is_searched_and_walked_by_arrows(drawn):
    tab = drawn()
    tab.fill("#graph input[type=search]", "MmBackward0")
    tab.wait_for_selector("#graph .box.dim", timeout=PATIENCE)
    tab.fill("#graph input[type=search]", "")
    first = tab.locator('#graph [data-box][tabindex="0"]')
    first.focus()
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.dataset.box") != tab.evaluate(
        "document.querySelector('#graph [data-box]').dataset.box"
    )


@ONE_THEME
def test_the_gradients_are_told_by_a_cursor_and_as_a_table(drawn):
    tab = drawn()
    tab.locator("#gradients canvas").focus()
    tab.keyboard.press("ArrowRight")
    tab.locator("#gradients [role=status]", has_text=", step").wait_for(timeout=PATIENCE)
    tab.click("#gradients summary")
    tab.wait_for_selector("#gradients tbody tr", timeout=PATIENCE)


AXED = [
    "good", "nan", "hostile", "failed", "lost", "queued", "deep", "good/tensors/3", "", "runs", "runs?status=canceled",
    "compare?a={good}&b={nan}", "rules", "rules/BP101", "audits", "problems/not-found",
]  # fmt: skip


@pytest.mark.parametrize("name", AXED)
def test_axe_finds_nothing_serious(walk, served, name):
    from axe_playwright_python.base import AXE_SCRIPT

    walk.tab.goto(served.page(name))
    if name in {"good", "nan", "hostile", "deep"}:
        walk.tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    walk.tab.evaluate(AXE_SCRIPT)
    assert walk.tab.evaluate(AXE) == []


@ONE_THEME
def test_the_last_step_of_the_gradients_is_inside_its_pane(drawn):
    tab = drawn()
    tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
    tab.evaluate("document.querySelector('.heat').style.width = '130px'")  # as many steps as there is room for
    width = "parseFloat(document.querySelector('.heat canvas').style.width) < 116"
    until(
        lambda: tab.evaluate(width), "a narrower picture"
    )  # a page's policy forbids `wait_for_function` its second look
    assert tab.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.heat'))")


@ONE_THEME
def test_the_other_pages_answer_in_words(walk, served):
    tab = walk.tab
    tab.goto(served.page("good") + "/tensors/3")
    assert tab.locator("h1").inner_text() == "z"
    assert "retain_grad() was not called" in tab.locator("#why").inner_text()
    tab.goto(served.page("runs"))
    for name in ("good", "nan"):
        tab.check(f"input[value='{served.runs[name]}']")
    tab.click("text=Compare the two that are ticked")
    tab.wait_for_url("**/compare?a=*", timeout=PATIENCE)
    assert tab.locator("h1").inner_text() == "What changed"
    assert "in another state" in tab.locator(".said").inner_text()


@ONE_THEME
def test_an_example_is_run_by_one_click(walk, served):
    walk.tab.goto(served.page(""))
    walk.tab.click("text=Run this program")
    walk.tab.wait_for_url("**/runs/run_*", timeout=PATIENCE)
    assert "unnamed" in walk.tab.locator("h1").inner_text()


@ONE_THEME
def test_names_of_strangers_do_nothing_on_any_page(walk, served):
    tab = walk.tab
    tab.goto(served.page("hostile"))
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    assert tab.locator("main img, main script:not([data-answer]), main b").count() == 0
    tab.fill("#graph input[type=search]", "<img src=x onerror=alert(1)>")
    tab.locator("#graph .said-below", has_text="found").first.wait_for(timeout=PATIENCE)
    for address in (
        *(f"{served.page('hostile')}/tensors/{number}" for number in range(5)),
        served.page(""),
        served.page("rules?q=<img src=x onerror=alert(1)>"),
        served.page("rules/BP101"),
        f"{served.url}/compare?a={served.runs['good']}&b={served.runs['hostile']}",
        f"{served.url}/runs?q=<img src=x onerror=alert(1)>",
    ):
        tab.goto(address)
        assert tab.locator("main img, main script:not([data-answer])").count() == 0


@ONE_THEME
@pytest.mark.parametrize("name", ["good", "nan", "deep", "unrecorded"])
def test_the_budgets_hold(drawn, name):
    """`deep`: a graph of 20,145 nodes. Time is measured in bench/pages.py."""
    script = next((ROOT / "service/dashboard/static/dist").glob("pages-*.js"))
    assert len(gzip.compress(script.read_bytes())) <= MOST_SCRIPT
    answers = []
    tab = drawn(name)
    tab.on("response", lambda response: answers.append(response))  # noqa: PLW0108 - Playwright looks into it
    tab.reload()
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
    at = next(at for at, one in enumerate(answers) if one.request.resource_type == "document")
    assert answers[at].headers["content-encoding"] == "gzip"
    told = [one for one in answers[at:] if "/v1/" in one.url]  # what came before was for the page that was left
    assert len(told) >= 2  # the graph came with the page
    assert all(len(gzip.compress(one.body())) <= MOST_JSON for one in told)
    assert tab.evaluate("document.querySelectorAll('*').length") <= MOST_ELEMENTS


def boxes(tab):
    """Names of the drawn boxes, by their ids."""
    return tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#graph [data-box]')].map(e => [e.dataset.box, e.getAttribute('aria-label')]))"
    )


@ONE_THEME
def test_twenty_thousand_nodes_are_seen_by_module_call_opened_searched_and_seen_alone(drawn):
    tab = drawn("deep")
    first = boxes(tab)
    fold = next(name for name in first if name.startswith("c1x"))
    assert first[fold].startswith("model#*.model.h.*#*, 1060 times")
    assert "gradient 0.5" in first[fold]
    assert "20,145 nodes" in tab.locator("#graph .said-below").last.inner_text()
    tab.locator(f'#graph [data-box="{fold}"]').click()
    tab.locator("#graph .chosen-box", has_text="model.h.*.ln.weight").wait_for(timeout=PATIENCE)
    tab.keyboard.press("e")
    tab.wait_for_selector('#graph [data-box="c2"]', timeout=PATIENCE)
    assert "c3x1059" in boxes(tab)
    assert "open=c1" in tab.url
    tab.reload()
    tab.wait_for_selector('#graph [data-box="c2"]', timeout=PATIENCE)
    tab.fill("#graph input[type=search]", "h.700.attn")
    tab.locator("#graph .found button").first.click(timeout=PATIENCE)
    tab.wait_for_selector(f'#graph [data-box="n{10 + 20 * 700 + 7}"]', timeout=PATIENCE)
    tab.locator('#graph [data-box="c2"]').click()
    tab.keyboard.press("f")
    tab.locator("#graph .said-below", has_text="Only one module call: 11 nodes").wait_for(timeout=PATIENCE)
    tab.click("text=Back to the whole graph")
    tab.wait_for_selector(f'#graph [data-box="{fold}"]', timeout=PATIENCE)


@ONE_THEME
def test_what_was_recorded_without_module_calls_is_folded_by_its_pattern(drawn):
    tab = drawn("unrecorded", "?open=c0")
    tab.wait_for_selector("#graph .pattern", timeout=PATIENCE)
    seen = boxes(tab)
    assert sorted(name.partition("x")[2] for name in seen if name[0] in "cp" and "x" in name) == ["100", "200"]
    tab.locator("#graph .pattern").click()
    tab.click("text=Open it")
    tab.wait_for_function("() => document.querySelectorAll('#graph [data-box]').length >= 18", timeout=PATIENCE)
    assert any(name.endswith("x199") for name in boxes(tab))


@ONE_THEME
def test_a_finding_and_the_tensor_whose_gradient_it_explains_lead_to_each_other(walk, served):
    tab = walk.tab
    tab.goto(served.page("good"))
    link = tab.locator("#t3 a[href^='#finding-']").first
    assert link.inner_text() == "BP101"
    link.click()
    tab.locator(".findings li:target a", has_text="tensor 3").click()
    assert tab.locator("h1").inner_text() == "z"
    assert "BP101" in tab.locator("#why").inner_text()


@ONE_THEME
def test_runs_that_are_ticked_become_one_audit(walk, served):
    tab = walk.tab
    tab.goto(served.page("runs"))
    tab.click("text=Audit those that are ticked")
    tab.locator("text=Tick the runs").wait_for(timeout=PATIENCE)
    for name in ("good", "nan"):
        tab.check(f"input[value='{served.runs[name]}']")
    with tab.expect_request("**/v1/audits") as asked:
        tab.click("text=Audit those that are ticked")
    assert {one["run"] for one in asked.value.post_data_json["items"]} == {served.runs["good"], served.runs["nan"]}
    tab.wait_for_url("**/audits/**", timeout=PATIENCE)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of a run whose names are hostile, as a file."""
    from backprobe.rules import judge
    from backprobe.show.html_report import html_document as document

    record = samples.tutorial(samples.Words(name=samples.HOSTILE, message=samples.HOSTILE, warning=samples.HOSTILE))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(document.render(record, judge(record), script=samples.HOSTILE), "utf-8")
    return path


def test_the_report_needs_no_server_and_runs_nothing_of_strangers(browser, report):
    context = browser.new_context()
    tab, faults = context.new_page(), []
    tab.on("console", lambda message: faults.append(message.text))
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
    tab.goto(report.as_uri())
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
    assert tab.locator("main img, main script:not([data-answer]), main b").count() == 0
    assert "<img src=x onerror=alert(1)>" in tab.locator("main").inner_text()
    context.close()
    assert faults == []


def test_the_report_is_read_without_scripts_and_allows_its_own_alone(browser, report):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(report.as_uri())
    assert "non-leaf-grad-read" in tab.locator("#findings").inner_text()
    assert tab.locator("#tensors tbody tr").count() >= 5
    context.close()
    text = report.read_text("utf-8")
    for element in ("script", "style"):
        content = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)[-1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src &#x27;sha256-{digest}&#x27;" in text
    data = re.search(r'<script type="application/json" id="in-file">(.*?)</script>', text, re.DOTALL)
    assert {"series?points=500", "retention"} <= json.loads(data[1]).keys()
