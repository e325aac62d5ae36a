"""Actions of the inbox: on one group and on several, and when another person has changed a group meanwhile."""

from __future__ import annotations

import httpx
import pytest

from tests.support.resources import require

PATIENCE = 60_000
"""Milliseconds; a condition is waited for, never a time."""

LONG_REASON = "the reason that took a while to type"

pytestmark = pytest.mark.parametrize("walk", ["light"], indirect=True)


@pytest.fixture(scope="module", autouse=True)
def assets():
    require("assets")


@pytest.fixture
def groups(served):
    """The groups by id, the one seen last first; all of them are open and nobody's."""
    for group in load_groups(served).values():
        change(served, group, {"state": "open", "owner": None})
    return load_groups(served)


def load_groups(served):
    return {group["id"]: group for group in httpx.get(f"{served.url}/v1/finding-groups").json()["items"]}


def change(served, group, body):
    headers = {"If-Match": f'"{group["version"]}"'}
    answer = httpx.patch(f"{served.url}{group['links']['self']}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text


def test_several_groups_are_muted_and_assigned_at_once(walk, served, groups):
    tab = walk.tab
    tab.goto(served.page("findings"))
    boxes = tab.locator("input[name=group]")
    chosen = [boxes.nth(n).input_value() for n in (0, 1)]
    for n in (0, 1):
        boxes.nth(n).check()
    tab.get_by_text("2 chosen").wait_for(timeout=PATIENCE)
    tab.click("summary:has-text('Assign')")
    with tab.expect_navigation(timeout=PATIENCE):
        tab.click("button:has-text('Assign to me')")
    tab.goto(served.page("findings?owner=me"))
    assert sorted(tab.locator("tr[data-group]").evaluate_all("rows => rows.map(row => row.dataset.group)")) == sorted(
        chosen
    )
    tab.check("text=All on this page")
    tab.click("summary:has-text('Mute')")
    tab.click("button:text-is('Mute')")
    tab.get_by_text("Type the reason").wait_for(timeout=PATIENCE)
    tab.fill("label:has-text('Reason') input", LONG_REASON)
    tab.fill("input[type=date]", "2031-05-03")
    with tab.expect_navigation(timeout=PATIENCE):
        tab.press("label:has-text('Reason') input", "Enter")
    after = load_groups(served)
    assert {after[group]["reason"] for group in chosen} == {LONG_REASON}
    assert {after[group]["muted_until"][:4] for group in chosen} == {"2031"}
    assert sum(group["state"] == "suppressed" for group in after.values()) == 2


def test_who_acts_on_a_group_that_another_changed_is_told_and_keeps_the_text(walk, served, groups):
    tab = walk.tab
    group = next(iter(groups.values()))
    tab.goto(served.page(f"findings/{group['id']}"))
    tab.click("summary:has-text('Mute')")
    tab.fill("label:has-text('Reason') input", LONG_REASON)
    change(served, group, {"state": "acknowledged", "owner": "bob"})
    tab.click("button:text-is('Mute')")
    tab.get_by_text("Someone else changed this group: it is acknowledged by local, owner bob.").wait_for(
        timeout=PATIENCE
    )
    assert load_groups(served)[group["id"]]["state"] == "acknowledged"
    assert tab.input_value("label:has-text('Reason') input") == LONG_REASON
    with tab.expect_navigation(timeout=PATIENCE):
        tab.click("button:text-is('Mute')")
    after = httpx.get(f"{served.url}{group['links']['self']}").json()
    assert (after["state"], after["reason"], after["owner"]) == ("suppressed", LONG_REASON, "bob")


def test_of_several_groups_the_one_that_another_changed_is_named_and_the_others_are_changed(walk, served, groups):
    tab = walk.tab
    tab.goto(served.page("findings"))
    first, second = list(groups)[:2]
    change(served, groups[first], {"state": "acknowledged"})
    for group in (first, second):
        tab.check(f"input[value={group}]")
    tab.click("button:has-text('Mark fixed')")
    tab.get_by_text("1 of 2 groups were changed.").wait_for(timeout=PATIENCE)
    tab.get_by_text("Someone else changed this group: it is acknowledged").wait_for(timeout=PATIENCE)
    after = load_groups(served)
    assert (after[first]["state"], after[second]["state"]) == ("acknowledged", "fixed")
    assert tab.inner_text(f"tr[data-group={second}] .status") == "changed"
    assert tab.is_checked(f"input[value={first}]")
    assert not tab.is_checked(f"input[value={second}]")
