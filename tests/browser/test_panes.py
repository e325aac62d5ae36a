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
from tests.support.waiting import wait_until

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
def open_panes(walk, served):
    """`open_panes(name, query)` opens a run's page, waits until its panes are drawn and returns the tab."""

    def open_page(name="good", query=""):
        walk.tab.goto(served.page(name) + query)
        walk.tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
        walk.tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
        return walk.tab

    return open_page


@pytest.fixture
def curves(walk, served):
    """The curves of a run, another one drawn over it; the tab."""
    query = f"?with={served.runs['diverged']}&name=*&stat=grad_norm"
    walk.tab.goto(served.page("trained") + query)
    walk.tab.wait_for_selector("#curves .uplot canvas", timeout=PATIENCE)
    return walk.tab


def test_curves_are_drawn_told_by_keys_and_pass_axe(curves):
    from axe_playwright_python.base import AXE_SCRIPT

    tab = curves
    assert tab.locator("#curves .uplot").count() == 3
    assert tab.locator("#curves-twin").count() == 0
    loss = tab.locator("#curves figure", has_text="Loss").first
    assert "NaN or Inf first at step 12" in loss.inner_text()
    loss.locator("[role=group]").focus()
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    said = loss.locator("[role=status]")
    assert said.inner_text().startswith("Step 1: this run 0.5; run …")
    tab.keyboard.press("End")
    assert said.inner_text() == "Step 39: this run 0.025"
    tab.evaluate(AXE_SCRIPT)
    assert tab.evaluate(AXE) == []


@ONE_THEME
def test_a_curve_can_be_enlarged_and_shown_whole_again(curves):
    tab = curves
    over = tab.locator("#curves .u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    x_range = "document.querySelector('#curves canvas').toDataURL()"
    whole = tab.evaluate(x_range)
    tab.mouse.move(box["x"] + 50, box["y"] + 40)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 150, box["y"] + 40)
    tab.mouse.up()
    wait_until(lambda: tab.evaluate(x_range) != whole, "a part of the curve")
    tab.locator("#curves [role=group]").first.focus()
    tab.keyboard.press("Escape")
    tab.mouse.move(5, 5)
    wait_until(lambda: tab.evaluate(x_range) == whole, "the whole curve")


def chosen_ids(tab):
    return sorted(tab.evaluate("[...document.querySelectorAll('.chosen')].map(e => e.id).filter(Boolean)"))


@ONE_THEME
def test_one_selection_marks_all_panes_and_comes_back_from_its_address(open_panes):
    tab = open_panes()
    box = tab.locator("#graph [data-box]", has_text="AddBackward0").first
    name = box.get_attribute("data-box")
    box.click()
    tab.wait_for_selector("#t3.chosen", timeout=PATIENCE)
    assert {"L5", "t3"} <= set(chosen_ids(tab))
    assert tab.locator(f'#graph [data-box="{name}"]').get_attribute("aria-pressed") == "true"
    tab.reload()
    tab.wait_for_selector("#t3.chosen", timeout=PATIENCE)
    tab.wait_for_selector(f'#graph [data-box="{name}"][aria-pressed=true]', timeout=PATIENCE)


@ONE_THEME
def test_a_row_of_the_table_marks_its_line_and_going_back_undoes_it(open_panes):
    tab = open_panes()
    tab.click("#t3 td.tight >> nth=0")
    tab.wait_for_selector("#t3.chosen", timeout=PATIENCE)
    assert "t=3" in tab.url
    tab.go_back()
    tab.wait_for_selector(".chosen", state="detached", timeout=PATIENCE)


@ONE_THEME
def test_keys_walk_over_findings_and_open_their_list(open_panes):
    tab = open_panes()
    tab.keyboard.press("j")
    tab.wait_for_selector(".findings > .chosen", timeout=PATIENCE)
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".chosen", state="detached", timeout=PATIENCE)
    tab.keyboard.press("?")
    tab.wait_for_selector("dialog[open]", timeout=PATIENCE)
    tab.keyboard.press("Escape")


@ONE_THEME
def test_the_graph_is_searched_and_walked_by_arrows(open_panes):
    tab = open_panes()
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
def test_the_gradients_are_told_by_a_cursor_and_as_a_table(open_panes):
    tab = open_panes()
    tab.locator("#gradients canvas").focus()
    tab.keyboard.press("ArrowRight")
    tab.locator("#gradients [role=status]", has_text=", step").wait_for(timeout=PATIENCE)
    tab.click("#gradients summary")
    tab.wait_for_selector("#gradients tbody tr", timeout=PATIENCE)


AXED = [
    "good", "nan", "hostile", "failed", "lost", "queued", "deep", "good/tensors/3", "", "runs", "runs?status=canceled",
    "compare?a={good}&b={nan}", "compare", "play", "play?rule=BP101", "rules", "rules/BP101", "audits",
    "audits/{audit}", "projects", "projects/default", "problems/not-found",
    "findings?state=all", "findings?q=none",
    "docs/api", "docs/api/runs",
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
def test_the_last_step_of_the_gradients_is_inside_its_pane(open_panes):
    tab = open_panes()
    tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
    tab.evaluate("document.querySelector('.heat').style.width = '130px'")  # as many steps as there is room for
    width = "parseFloat(document.querySelector('.heat canvas').style.width) < 116"
    wait_until(
        lambda: tab.evaluate(width), "a narrower picture"
    )  # a page's policy forbids `wait_for_function` its second look
    assert tab.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.heat'))")


@ONE_THEME
@pytest.mark.parametrize("part", [".why", "a.at"])
def test_a_finding_leads_to_its_line_tensor_and_backward_call(open_panes, part):
    tab = open_panes()
    tab.locator(f"#findings li {part}").first.click()
    tab.wait_for_selector("#call-0.chosen", timeout=PATIENCE)
    assert {"L5", "t3", "call-0"} <= set(chosen_ids(tab))
    assert "call=0" in tab.url


OVERFLOW = "(e => [e.scrollWidth > e.clientWidth + 1, e.scrollHeight > e.clientHeight + 1])(document.querySelector('.graph-view'))"


@ONE_THEME
def test_a_graph_fits_in_both_directions_and_has_a_small_picture_of_itself_where_not(open_panes):
    tab = open_panes("deep")
    tab.evaluate("document.querySelector('.graph-view').style.maxHeight = '160px'")
    assert tab.evaluate(OVERFLOW)[1]
    small = tab.locator(".minimap")
    small.wait_for(timeout=PATIENCE)
    box = small.bounding_box()
    tab.evaluate("document.querySelector('.graph-view').scrollTo(0, 0)")
    small.click(position={"x": box["width"] / 2, "y": box["height"] - 2})
    assert tab.evaluate(
        "(e => e.scrollTop + e.clientHeight >= e.scrollHeight - 1)(document.querySelector('.graph-view'))"
    )
    tab.click(".zooms >> text=Fit")
    small.wait_for(state="detached", timeout=PATIENCE)
    assert tab.evaluate(OVERFLOW) == [False, False]


@ONE_THEME
def test_a_copied_address_has_the_same_zoom_box_and_search(open_panes, walk):
    tab = open_panes("deep")
    box = tab.locator("#graph [data-box]").nth(3)
    name = box.get_attribute("data-box")
    box.click()
    tab.click(".zooms [aria-label=Larger]")
    tab.fill("#graph input[type=search]", "block")
    tab.locator("#graph .found, #graph .bar [role=status]").first.wait_for(timeout=PATIENCE)
    state = "[document.querySelector('.graph-drawn').getAttribute('width'), document.querySelector('.chosen-box strong').textContent, document.querySelector('#graph input[type=search]').value, document.querySelectorAll('#graph .dim').length]"
    before, address = tab.evaluate(state), tab.url
    assert name is not None
    tab.goto("about:blank")
    tab.goto(address)
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    assert tab.evaluate(state) == before


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


HEAT = {
    "stat": "grad_norm", "exact": True, "moments": list(range(40)), "steps": list(range(40)),
    "rows": [
        {"tensor": row, "name": f"layer.{row}.weight", "fqn": None, "line": 1, "values": [0.5 + row] * 40}
        for row in range(60)
    ],
}  # fmt: skip


@ONE_THEME
def test_the_value_of_a_cell_is_seen_beside_it_wherever_the_pane_is_scrolled(walk, open_panes):
    walk.tab.route("**/series?points=500", lambda route: route.fulfill(json=HEAT))
    tab = open_panes()
    pane, tip = tab.locator(".heat"), tab.locator(".heat-tip")
    pane.scroll_into_view_if_needed()
    tab.evaluate("document.querySelector('.heat').scrollTo(0, 1e6)")
    outer, picture = pane.bounding_box(), tab.locator(".heat canvas").bounding_box()
    assert picture["height"] > outer["height"] + 100
    right = picture["x"] + picture["width"] - 6

    def place_of_tip():
        shown = tip.bounding_box()
        assert outer["x"] <= shown["x"]
        assert shown["x"] + shown["width"] <= outer["x"] + outer["width"]
        assert outer["y"] <= shown["y"] <= outer["y"] + outer["height"] - shown["height"]
        return shown["y"]

    tab.mouse.move(right, outer["y"] + 60)
    wait_until(tip.count, "the value of the cell that is pointed at")
    pointed = tip.inner_text()
    assert re.fullmatch(r"layer\.\d+\.weight, step 39: norm [\d.]+", pointed)
    assert abs(place_of_tip() - outer["y"] - 60) < 60
    last = outer["y"] + outer["height"] - 30
    tab.mouse.click(right, last)
    tab.mouse.move(1, 1)
    wait_until(
        lambda: tip.inner_text() == "layer.59.weight, step 39: norm 59.5", "the value of the cell that was clicked"
    )
    assert place_of_tip() < last
    assert tab.locator("#gradients [role=status]").inner_text() == tip.inner_text()


@ONE_THEME
@pytest.mark.parametrize(
    ("nodes", "marks"),
    [
        ([1, 2, 3], ["0 nodes", "1 node", "2 nodes", "3 nodes"]),
        ([4, 9, 14], ["0 nodes", "5 nodes", "10 nodes"]),
        ([1], ["0 nodes", "1 node"]),
    ],
)
def test_marks_of_held_nodes_are_whole_and_the_same_apart(walk, open_panes, nodes, marks):
    nothing = {"moment": 0, "step": 0, "held_bytes": 0, "live_tensors": 1, "lines": [], "other": None, "roots": []}
    items = [nothing | {"call": call, "live_nodes": count} for call, count in enumerate(nodes)]
    walk.tab.route("**/retention", lambda route: route.fulfill(json={"items": items}))
    tab = open_panes()
    tab.wait_for_selector(".held-drawn", timeout=PATIENCE)
    assert tab.locator(".held-drawn g .tick").all_text_contents() == marks


DIRECTIONS = r"""() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === 3 && node.parentElement.closest('script')) continue;
    const texts = node.nodeType === 3 ? [node.data] : [...node.attributes].map(one => one.value);
    for (const text of texts) if (/[\u200e\u200f\u202a-\u202e\u2066-\u2069\x1b]/.test(text)) found.push(text.slice(0, 80));
  }
  return found;
}"""


@ONE_THEME
def test_no_name_of_a_stranger_turns_text_round_in_a_drawing_or_its_words(walk, served):
    tab = walk.tab
    tab.goto(served.page("hostile"))
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
    tab.locator("#gradients canvas").focus()
    tab.keyboard.press("ArrowRight")
    tab.click("#gradients summary")
    tab.wait_for_selector("#gradients tbody tr", timeout=PATIENCE)
    tab.locator("#graph [data-box]").first.click()
    tab.wait_for_selector(".chosen-box", timeout=PATIENCE)
    assert "\\u202e" in tab.locator("#graph svg.graph-drawn").inner_html()
    assert tab.evaluate(DIRECTIONS) == []


@ONE_THEME
def test_names_of_strangers_do_nothing_on_any_page(walk, served):
    tab = walk.tab
    tab.goto(served.page("hostile"))
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    assert tab.locator("main img, main script:not([data-answer]):not([type='application/json']), main b").count() == 0
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
        assert tab.locator("main img, main script:not([data-answer]):not([type='application/json'])").count() == 0


@ONE_THEME
@pytest.mark.parametrize("name", ["good", "nan", "deep", "unrecorded"])
def test_the_budgets_hold(open_panes, name):
    """`deep`: a graph of 20,145 nodes. Time is measured in bench/pages.py."""
    dist = ROOT / "service/dashboard/static/dist"
    scripts = [*dist.glob("pages-*.js"), *dist.glob("curves-*.js")]
    assert sum(len(gzip.compress(script.read_bytes())) for script in scripts) <= MOST_SCRIPT
    answers = []
    tab = open_panes(name)
    tab.on("response", lambda response: answers.append(response))  # noqa: PLW0108 - Playwright looks into it
    tab.reload()
    tab.wait_for_selector("#graph [data-box]", timeout=PATIENCE)
    tab.wait_for_selector("#gradients canvas", timeout=PATIENCE)
    at = next(at for at, answer in enumerate(answers) if answer.request.resource_type == "document")
    assert answers[at].headers["content-encoding"] == "gzip"
    told = [
        answer for answer in answers[at:] if "/v1/" in answer.url
    ]  # what came before was for the page that was left
    assert len(told) >= 2  # the graph came with the page
    assert all(len(gzip.compress(answer.body())) <= MOST_JSON for answer in told)
    assert tab.evaluate("document.querySelectorAll('*').length") <= MOST_ELEMENTS


def boxes(tab):
    """Names of the drawn boxes, by their ids."""
    return tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#graph [data-box]')].map(e => [e.dataset.box, e.getAttribute('aria-label')]))"
    )


@ONE_THEME
def test_twenty_thousand_nodes_are_seen_by_module_call_opened_searched_and_seen_alone(open_panes):
    tab = open_panes("deep")
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
def test_what_was_recorded_without_module_calls_is_folded_by_its_pattern(open_panes):
    tab = open_panes("unrecorded", "?open=c0")
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
    tab.click("text=Audit the ticked runs")
    tab.locator("text=Tick the runs").wait_for(timeout=PATIENCE)
    for name in ("good", "nan"):
        tab.check(f"input[value='{served.runs[name]}']")
    with tab.expect_request("**/v1/audits") as sent:
        tab.click("text=Audit the ticked runs")
    assert {item["run"] for item in sent.value.post_data_json["items"]} == {served.runs["good"], served.runs["nan"]}
    tab.wait_for_url(re.compile("(?<!/v1)/audits/aud_"), timeout=PATIENCE)


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
    assert tab.locator("main img, main script:not([data-answer]):not([type='application/json']), main b").count() == 0
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


@ONE_THEME
def test_a_run_is_pinned_labelled_and_run_again(walk, served):
    tab = walk.tab
    tab.goto(served.page("exceeded"))
    tab.locator(".acts button", has_text="Pin").click(timeout=PATIENCE)
    tab.locator(".facts", has_text="kept until it is unpinned").wait_for(timeout=PATIENCE)
    tab.click("summary:has-text('Labels')")
    tab.fill(".acts input[type=text]", "team=vision, pr=12")
    tab.click("text=Save the labels")
    tab.locator(".facts .badge", has_text="team=vision").wait_for(timeout=PATIENCE)
    with tab.expect_request("**/rerun") as sent:
        tab.click("text=Run again with 240 s")
    assert sent.value.post_data_json == {"limits": {"wall_seconds": 240}}
    tab.wait_for_url(lambda url: served.runs["exceeded"] not in url, timeout=PATIENCE)
    tab.locator(".acts button", has_text="Cancel").click(timeout=PATIENCE)
    tab.locator(".status-canceled").wait_for(timeout=PATIENCE)


@ONE_THEME
def test_a_record_is_deleted_only_after_a_question(walk, served):
    tab = walk.tab
    tab.goto(served.page("lost"))
    tab.locator(".acts button", has_text="Delete").first.click(timeout=PATIENCE)
    tab.click("text=Keep it")
    assert tab.request.get(f"{served.url}/v1/runs/{served.runs['lost']}").json()["record"]["state"] != "expired"
    tab.locator(".acts button", has_text="Delete").first.click()
    tab.click("text=Delete it")
    tab.locator(".acts dialog[open]").wait_for(state="detached", timeout=PATIENCE)
    wait_until(
        lambda: tab.request.get(f"{served.url}/v1/runs/{served.runs['lost']}").json()["record"]["state"] == "expired",
        "the record's end",
    )
