"""The playground in Chromium: a program is run, edited, fixed, shared and copied; nobody works behind it, so a test ends the runs."""

from __future__ import annotations

import gzip

import pytest

from tests.support.resources import ROOT, require
from tests.support.waiting import wait_until

PATIENCE = 60_000
MOST_SCRIPT = 220 << 10
"""Of all scripts of the page, in gzip."""

ONE_THEME = pytest.mark.parametrize("walk", ["light"], indirect=True)


@pytest.fixture(scope="module", autouse=True)
def assets():
    require("assets")


@pytest.fixture
def playground(walk, served):
    """The playground with the answer of a good run beside its program; the tab."""
    tab = walk.tab
    run = tab.request.get(f"{served.url}/v1/runs/{served.runs['good']}").json()
    tab.goto(f"{served.url}/play/{run['snippet']}?run={run['id']}")
    tab.wait_for_selector(".play-lines li", timeout=PATIENCE)
    return tab


def test_a_link_shows_the_same_program_with_its_answer(playground):
    assert "non-leaf-grad-read" in playground.locator("#findings").inner_text()
    assert "z" in playground.locator(".play-lines li.warning").inner_text()
    from axe_playwright_python.base import AXE_SCRIPT

    from tests.browser.test_panes import AXE

    playground.evaluate(AXE_SCRIPT)
    assert playground.evaluate(AXE) == []


@ONE_THEME
def test_lines_that_were_edited_are_marked_and_no_others(playground):
    tab = playground
    tab.locator(".cm-line").nth(4).click()
    tab.keyboard.press("End")
    tab.keyboard.type("  # edited")
    tab.wait_for_selector(".play-lines .stale", timeout=PATIENCE)
    assert tab.locator(".play-lines .stale").count() == 1
    assert "edited since" in tab.locator(".play-lines > li").nth(4).inner_text()
    assert "# edited" in tab.locator("textarea").input_value()


@ONE_THEME
def test_a_program_is_sent_by_its_key_waited_for_and_canceled(playground):
    tab = playground
    tab.locator(".cm-content").focus()
    with tab.expect_request(lambda asked: asked.method == "POST") as sent:
        tab.keyboard.press("Control+Enter")
    assert sent.value.post_data_json.keys() in ({"source"}, {"files", "entry"})
    tab.locator(".play-said", has_text="Waiting for a worker").wait_for(timeout=PATIENCE)
    tab.click(".play-said button")
    tab.locator(".play-said", has_text="canceled").wait_for(timeout=PATIENCE)
    assert "?run=run_" in tab.url


@ONE_THEME
def test_the_program_is_copied_for_other_places(playground):
    tab = playground
    for name, begins in {
        "CLI": "cat > ",
        "curl": "curl -s '",
        "test": "import backprobe",
        "issue": "```python",
    }.items():
        tab.click(f"[aria-label='Copy as {name}']")
        wait_until(
            lambda begins=begins: tab.locator(".play-copied pre").inner_text().startswith(begins), f"a copy as {name}"
        )
    tab.click("text=Copy link")
    wait_until(lambda: "/play/snp_" in tab.locator(".play-copied pre").inner_text(), "a link")


@ONE_THEME
def test_the_scripts_of_the_page_are_in_their_budget(walk, served):
    sizes = [
        len(gzip.compress(path.read_bytes())) for path in (ROOT / "service/dashboard/static/dist").glob("pl*.js")
    ] + [len(gzip.compress(path.read_bytes())) for path in (ROOT / "service/dashboard/static/dist").glob("pages-*.js")]
    assert sum(sizes) <= MOST_SCRIPT
    walk.tab.goto(served.page("play"))
    walk.tab.wait_for_selector(".cm-editor", timeout=PATIENCE)


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_off(playground, width):
    from tests.browser.test_pages import CUT_OFF

    playground.set_viewport_size({"width": width, "height": 900})
    found = [line for line in playground.evaluate(CUT_OFF) if "cm-" not in line]
    assert found == []


def test_without_scripts_the_form_runs_the_program(browser, served):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(served.page("play"))
    tab.fill("textarea", "print(2)\n")
    tab.click("form[action='/play'] button")
    assert "/runs/run_" in tab.url
    context.close()
