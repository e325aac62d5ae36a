"""Tensors on pages: the table of a run is filtered by the server, and one tensor has a life line of its norms."""

from __future__ import annotations

import html
import re

import pytest

from backprobe import record as r
from service.dashboard.curves import life_line


def rows_of(site, run, query=""):
    answer = site.client.get(f"/runs/{run}{query}")
    assert answer.status_code == 200, answer.text
    return [int(number) for number in re.findall(r'<tr id="t(\d+)"', answer.text)]


@pytest.mark.parametrize(
    ("query", "tensors"),
    [
        ("?q=W", [1]),
        ("?q=*", None),
        ("?q=nothing", []),
        ("?show=non-finite", [1]),
        ("?show=parameters", []),
        ("?q=W&show=without-gradient", []),
    ],
)
def test_the_table_has_the_tensors_that_were_asked_for(site, samples, query, tensors):
    run = site.finished(samples.tutorial(nan=True))
    assert rows_of(site, run, query) == (rows_of(site, run) if tensors is None else tensors)


def test_a_filter_stays_on_the_next_page(site, samples, monkeypatch):
    from service.dashboard import run_page

    run = site.finished()
    every = rows_of(site, run, "?q=*")
    monkeypatch.setattr(run_page, "TENSORS_PER_PAGE", 2)
    text = site.client.get(f"/runs/{run}?q=*").text
    (following,) = re.findall(r'href="(\?q=[^"]*)#tensors" rel="next"', text)
    assert rows_of(site, run, html.unescape(following)) == every[2:4]
    assert site.client.get(f"/runs/{run}{html.unescape(following).replace('q=%2A', 'q=W')}").status_code == 422


def life_of(site, run, tensor):
    text = site.client.get(f"/runs/{run}/tensors/{tensor}").text
    (section,) = re.findall(r'id="life".*?</section>', text, re.DOTALL)
    return section, " ".join(re.sub(r"<[^>]+>", " ", section).split())


def test_a_tensor_has_a_life_line_with_its_norms(site):
    section, words = life_of(site, site.finished(), 1)
    assert "value 1.5 at moment 1" in words
    assert "gradient 2.449 at moment 6" in words
    assert section.count("<figure") == 2


def test_a_gradient_that_is_set_to_none_breaks_its_line():
    class Row:
        def __init__(self, moment, norm, grad="present"):
            stats = None if norm is None else r.Statistics(norm=norm, counted=1)
            self.moment, self.grad, self.grad_stats, self.value = moment, grad, stats, None

    rows = [Row(1, 2.0), Row(2, None), Row(3, 3.0), Row(4, None, "none"), Row(5, 1.0)]
    (gradient,) = life_line.draw_life(None, None, 0, rows, [3, 9], is_whole=True)
    assert gradient.chart.lines[0].path == "M0 50h0L500 4M1000 96h0"
    assert gradient.marks == ("500",)
