"""The report in one file: what it holds without scripts, what it escapes, and what it does where it cannot be made."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from backprobe.rules import judge
from backprobe.rules.framework.finding import Edit, Finding, Fix, Region
from backprobe.show.first_occurrence import first_seen
from backprobe.show.formats.finding_text import source_of
from backprobe.show.html_report import assets, html_document
from backprobe.show.html_report.answers import answers
from backprobe.show.html_report.finding_cards import findings_pane
from backprobe.show.html_report.markup import name, prose, tag, text, trust_text
from tests.support import samples
from tests.support.resources import require


def finding() -> Finding:
    return next(row for row in judge(samples.tutorial()).findings if row.suppressed is None)


def describe_occurrences(count: int, first: int, last: int, **evidence: object) -> str:
    reported = finding()
    occurrences = msgspec.structs.replace(reported.occurrences, count=count, first_step=first, last_step=last)
    return first_seen(msgspec.structs.replace(reported, occurrences=occurrences, evidence=evidence), 12)


def test_a_finding_tells_step_call_module_and_value():
    assert describe_occurrences(1, 7, 7, backward_call=7, what="inf") == "First at step 7, in backward call 8: inf."
    assert describe_occurrences(40, 0, 39, module="h.3.mlp") == "First at step 0, in h.3.mlp; 40 times until step 39."
    assert first_seen(finding()) == ""


def test_markup_escapes_all_that_is_not_markup_of_ours():
    assert tag("p", "<b>", trust_text("<i>"), class_="a\"'") == '<p class="a&quot;&#x27;">&lt;b&gt;<i></p>'
    assert text("\u202e<\x07") == "\\u202e&lt;\\x07"
    assert prose("a `<b>` c") == "a <code>&lt;b&gt;</code> c"
    assert len(name("x" * 500)) == 200
    assert tag("input", type="text", hidden=True, title=None, checked=False) == '<input type="text" hidden>'


def test_the_answers_have_the_paths_and_shapes_of_the_api():
    record = samples.tutorial()
    told, first = answers(record, judge(record).findings)
    assert first == 0
    assert set(told) == {"graph?root=call:0&max=60", "series?points=500", "retention"}
    graph = told["graph?root=call:0&max=60"]
    assert {"z", "W", "b"} <= {box["label"] for box in graph["boxes"]}
    ids = {box["id"] for box in graph["boxes"]}
    assert {edge["start"] for edge in graph["edges"]} | {edge["end"] for edge in graph["edges"]} <= ids
    assert graph["nodes"] == 5
    assert {row["name"] for row in told["series?points=500"]["rows"]} == {"W", "b"}


def test_the_file_is_read_without_scripts_and_ends_no_element_early():
    require("assets")
    words = samples.Words(name=samples.HOSTILE + "</script>{}", message=samples.HOSTILE, warning=samples.HOSTILE)
    record = samples.tutorial(words)
    page = html_document.render(record, judge(record), script="<script>alert(1)</script>")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "non-leaf-grad-read" in page
    assert "default-src &#x27;none&#x27;" in page
    data = re.search(r'id="in-file">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["series?points=500"]["rows"]


def test_a_fix_is_the_lines_that_go_and_come():
    record, reported = samples.tutorial(), finding()
    line = source_of(record, reported.location.path)[reported.location.region.start_line - 1]
    whole = Region(
        start_line=reported.location.region.start_line, start_col=len(line) + 1,
        end_line=reported.location.region.start_line, end_col=len(line) + 1,
    )  # fmt: skip
    fix = Fix(title="Say so", safety="safe", edits=(Edit(path=reported.location.path, region=whole, text="  # so"),))
    page = findings_pane(record, [msgspec.structs.replace(reported, fixes=(fix,))], 1, 1)
    shown = [
        tag("div", tag("span", f"{kind}: ", class_="hidden"), text(after), class_=kind)
        for kind, after in (("removed", line), ("added", f"{line}  # so"))
    ]
    assert "".join(shown) in page


def test_the_head_of_the_page_is_the_files_name():
    require("assets")
    record = samples.tutorial()
    page = html_document.render(record, judge(record), script="programs/train.py")
    assert '<h1 title="programs/train.py">train.py</h1>' in page


def test_without_the_bundle_it_says_what_to_do(tmp_path):
    with pytest.raises(assets.AssetsMissing, match=r"make web.*Node\.js 20\.19"):
        assets.assets(tmp_path)
