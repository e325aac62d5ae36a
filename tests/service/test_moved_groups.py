"""Groups survive a renamed file, moved lines and a function that moves to another file. Histories of small programs."""

from __future__ import annotations

import ast
import dataclasses

import msgspec
import pytest
import sqlalchemy as sa

from backprobe.rules import judge
from backprobe.rules.framework.finding import Location, Region, with_fingerprints
from store.findings import rejudging
from store.tables import finding_group_alias

STEP = "def step(net, x):\n    loss = net(x).sum().data\n    return loss\n"
MAIN = "print(step(None, None))\n"
NET = "class Net:\n    def forward(self, x):\n        return x.data\n"
USE = "net = Net()\n"

RENAMED = [
    {"train.py": "from net import Net\n" + USE, "net.py": NET},
    {"train.py": "from models.net import Net\n" + USE, "models/net.py": NET},
    {"train.py": "from models.nets import Net\n" + USE, "models/nets.py": "import torch\n\n\n" + NET},
]
LINES_MOVED = [
    {"train.py": STEP + MAIN},
    {"train.py": "import torch\n\n# steps\n" + STEP + MAIN},
    {"train.py": "def other():\n    return 1\n\n\n" + STEP.replace("    loss", "    x = x + 1\n    loss") + MAIN},
]
FUNCTION_MOVED = [
    {"train.py": STEP + MAIN, "lib.py": "A = 1\n"},
    {"train.py": "from lib import step\n" + MAIN, "lib.py": "A = 1\n\n\n" + STEP},
]


def location_of(path, text, number):
    """The place of a line, with the qualified name around it."""
    names = []

    def look(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.lineno <= number <= child.end_lineno:
                names.append(child.name)
                look(child)

    look(ast.parse(text))
    line = text.splitlines()[number - 1]
    place = Region(start_line=number, start_col=1, end_line=number, end_col=len(line) + 1)
    return Location(path=path, region=place, text=line, function=".".join(names) or "<module>")


def show(site, samples, files, entry="train.py", unused=None):
    """Run a program as a worker would; each line with `.data` is a finding, but in a file that is unused."""
    body = {"files": [{"path": path, "text": text} for path, text in files.items()], "entry": entry}
    return site.finished(samples.tutorial(), body=body, judgement=judge_lines(samples, files, unused))


def judge_lines(samples, files, unused=None):
    """A judgement with a finding at each line with `.data`, but in a file that is unused."""
    judged = judge(samples.tutorial())
    found = [
        msgspec.structs.replace(judged.findings[0], location=location_of(path, text, number))
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if ".data" in line and path != unused
    ]
    return dataclasses.replace(judged, findings=with_fingerprints(found))


def groups(site):
    return site.client.get("/v1/finding-groups?include=days").json["items"]


@pytest.mark.parametrize("history", [RENAMED, LINES_MOVED, FUNCTION_MOVED])
def test_a_group_survives_the_history_of_its_program(site, samples, history):
    first = show(site, samples, history[0])
    (group,) = groups(site)
    tag = {"If-Match": f'"{group["version"]}"'}
    body = {"state": "acknowledged", "reason": "known", "owner": "ann"}
    assert site.client.patch(f"/v1/finding-groups/{group['id']}", json=body, headers=tag).status_code == 200
    runs = [first, *(show(site, samples, files) for files in history[1:])]
    (after,) = groups(site)
    kept = ("id", "fingerprint", "state", "reason", "owner", "first_run", "first_seen_at")
    assert [after[name] for name in kept] == [{**group, **body}[name] for name in kept]
    assert (after["runs"], after["last_run"], sum(day["runs"] for day in after["days"])) == (
        len(runs),
        runs[-1],
        len(runs),
    )
    found = site.client.get(after["links"]["findings"]).json["items"]
    assert [finding["run"] for finding in found] == runs[::-1]
    assert {finding["group"]["id"] for finding in found} == {group["id"]}
    last = found[0]["location"]
    assert (after["path"], after["line"]) == (last["path"], last["region"]["start_line"])
    assert (after["made_of"]["path"], after["made_of"]["text"]) == (last["path"], " ".join(last["text"].split()))


def test_a_fixed_group_returns_when_its_file_was_renamed(site, samples):
    show(site, samples, RENAMED[0])
    (group,) = groups(site)
    tag = {"If-Match": f'"{group["version"]}"'}
    site.client.patch(f"/v1/finding-groups/{group['id']}", json={"state": "fixed"}, headers=tag)
    show(site, samples, RENAMED[1])
    (back,) = groups(site)
    assert (back["id"], back["state"], back["has_returned"], back["returned"]) == (group["id"], "open", True, 1)


@pytest.mark.parametrize(
    ("files", "entry", "count"),
    [
        pytest.param({**RENAMED[0], "models/net.py": NET}, "train.py", 2, id="a copy beside the file"),
        pytest.param({"main.py": RENAMED[1]["train.py"], "models/net.py": NET}, "main.py", 2, id="another program"),
        pytest.param({"train.py": USE, "a.py": NET, "b.py": NET}, "train.py", 3, id="a file that became two"),
        pytest.param({"train.py": USE, "a.py": NET.replace("forward", "f")}, "train.py", 2, id="another function"),
    ],
)
def test_what_may_be_another_place_begins_a_group_of_its_own(site, samples, files, entry, count):
    show(site, samples, RENAMED[0])
    (group,) = groups(site)
    show(site, samples, files, entry)
    assert len(groups(site)) == count
    assert [found["runs"] for found in groups(site) if found["id"] == group["id"]] == [1 + ("net.py" in files)]


def test_a_line_that_the_program_still_has_has_not_moved(site, samples):
    show(site, samples, RENAMED[0])
    show(site, samples, {**RENAMED[0], "copy.py": NET}, unused="net.py")
    assert sorted((found["path"], found["runs"]) for found in groups(site)) == [("copy.py", 1), ("net.py", 1)]


def test_of_two_groups_that_it_may_have_moved_out_of_none_takes_a_finding(site, samples):
    show(site, samples, {"train.py": USE, "a.py": NET, "b.py": NET})
    show(site, samples, {"train.py": USE, "c.py": NET})
    assert sorted((found["path"], found["runs"]) for found in groups(site)) == [("a.py", 1), ("b.py", 1), ("c.py", 1)]


def test_a_program_with_both_places_ends_the_alias(site, samples):
    show(site, samples, RENAMED[0])
    show(site, samples, RENAMED[1])
    (group,) = groups(site)
    show(site, samples, {**RENAMED[1], **RENAMED[0]})
    assert sorted((found["path"], found["id"] == group["id"]) for found in groups(site)) == [
        ("models/net.py", False),
        ("net.py", True),
    ]
    show(site, samples, RENAMED[1])
    assert sorted((found["path"], found["runs"]) for found in groups(site)) == [("models/net.py", 2), ("net.py", 3)]


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("unused", ["net.py", "models/net.py"])
def test_a_run_that_shows_both_places_one_after_the_other_counts_once_in_each_group(site, samples, unused, is_fixed):
    show(site, samples, RENAMED[0])
    show(site, samples, RENAMED[1])
    (group,) = groups(site)
    if is_fixed:
        tag = {"If-Match": f'"{group["version"]}"'}
        site.client.patch(f"/v1/finding-groups/{group['id']}", json={"state": "fixed"}, headers=tag)
    both = {**RENAMED[1], **RENAMED[0]}
    run = show(site, samples, both, unused=unused)
    for ruleset in ("rs_newer", "rs_newest"):
        judge_again(site, samples, run, both, ruleset)
    after = {found["id"] == group["id"]: found for found in groups(site)}
    assert [(after[is_first]["path"], after[is_first]["runs"]) for is_first in (True, False)] == [
        ("net.py", 3),
        ("models/net.py", 1),
    ]
    assert all(sum(day["runs"] for day in found["days"]) == found["runs"] for found in after.values())
    assert [after[is_first]["returned"] for is_first in (True, False)] == [int(is_fixed), 0]
    with site.context.database.read() as transaction:
        assert transaction.execute(sa.select(finding_group_alias.c.fingerprint)).all() == []
    found = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    assert {item["location"]["path"]: item["group"]["id"] for item in found} == {
        item["path"]: item["id"] for item in after.values()
    }


def judge_again(site, samples, run, files, ruleset):
    """Judge a run by newer rules, which see each line with `.data`."""
    database = site.context.database
    with database.read() as transaction:
        (due,) = [due for due in rejudging.older(transaction, ruleset) if due.public_id == run]
    judged = dataclasses.replace(judge_lines(samples, files), ruleset=ruleset)
    assert rejudging.judged_again(database, due, rejudging.record_of(database, due), judged, {}) is not None
