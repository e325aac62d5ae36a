"""The section "Curves" without scripts: loss and gradient norm of a run and of another one, and chosen tensors."""

from __future__ import annotations

import dataclasses
import html
import re

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

from service.dashboard.curves.life_line import _marks
from service.dashboard.curves.line_chart import HEIGHT, WIDTH, Line, draw_chart
from service.dashboard.inbox.spark import HEIGHT as SPARK_HEIGHT
from service.dashboard.inbox.spark import spark_of
from service.process.recent_curves import MOST_KEPT
from store import tables
from store.runs import lifecycle


@pytest.fixture
def section(site):
    def open_section(run, query=""):
        answer = site.client.get(f"/runs/{run}{query}")
        assert answer.status_code == 200, answer.text
        (text,) = re.findall(r'<section class="pane" id="curves".*?</section>', answer.text, re.DOTALL)
        return text

    return open_section


def words_of(text):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_a_second_run_is_drawn_over_the_first(site, samples, section):
    run, other = site.finished(samples.trained(5)), site.finished(samples.trained(3, nan_at=1))
    text = section(run, f"?with={other}")
    words = words_of(text)
    assert "this run 1 at step 0, 0.2 at step 4; from 0.2 to 1" in words
    assert f"run …{other[-6:]} 1 at step 0, 0.3333 at step 2; from 0.3333 to 1; NaN or Inf first at step 1" in words
    assert text.count("<figure") == 2
    assert text.count('class="line-1 other') == 4  # two charts, each with its key
    assert "1 0.5 1 NaN 1" in words
    assert "3 0.25 3 not measured not measured" in words
    assert f"/v1/runs/{run}/steps?format=csv" in text


def test_a_statistic_of_tensors_is_drawn_where_it_was_taken(site, samples, section):
    run = site.finished(samples.trained(2))
    text = section(run, "?name=*&stat=grad_norm")
    assert "Norm of the gradient: *" in words_of(text)
    assert re.search(r"W [-0-9.]+ at step 0", words_of(text))
    assert f"/v1/runs/{run}/series?stat=grad_norm&amp;kind=after-backward&amp;name=%2A&amp;format=csv" in text
    assert "kind=after-statement" in section(run, "?name=*&stat=value_norm")
    assert "No norm of the value was recorded for nothing." in words_of(section(run, "?name=nothing&stat=value_norm"))


@pytest.mark.parametrize("other", ["run_none", "self", "queued"])
def test_a_run_that_cannot_be_drawn_is_named(site, samples, section, other):
    run, queued = site.finished(samples.trained(2)), site.submit()
    chosen = {"self": run, "queued": queued}.get(other, other)
    text = section(run, f"?with={chosen}")
    said = {"run_none": "There is no run run_none.", "self": "over itself", "queued": "no record that can be read"}[
        other
    ]
    assert said in words_of(text)
    assert "other" not in re.findall(r'class="(line-[^"]*)"', text)


def test_a_run_without_steps_says_so(site, section):
    assert "nothing changes over steps" in section(site.finished())


def test_a_point_for_several_steps_is_not_said_to_be_one_step():
    line = Line(label="x", colour=0, is_other=False, steps=[0, 10, 20], values=[3.0, float("nan"), 1.0], kind="peaks")
    assert line.words == "at most 3; NaN or Inf first in steps 10 to 19"


def test_values_lie_between_the_edges_and_a_gap_breaks_the_line():
    line = Line(label="x", colour=0, is_other=False, steps=[0, 1, 2, 3], values=[-1e308, 1e308, None, 0.0])
    chart = draw_chart("x", [line])
    assert chart is not None
    assert chart.lines[0].path == "M0 96h0L333.333 4M1000 50h0"


MEASURED = st.lists(
    st.tuples(st.integers(0, 2**63), st.one_of(st.none(), st.floats())), max_size=8, unique_by=lambda pair: pair[0]
)
"""Steps and values: each float there is, subnormal, NaN and infinite ones too."""


@example([(0, 0.0), (1, 5e-324)])
@example([(0, 2e-323), (1, 2.5e-323)])
@example([(0, -1.7976931348623157e308), (1, 1.7976931348623157e308)])
@given(MEASURED)
def test_every_float_has_a_place_in_its_chart_and_the_greatest_is_at_the_top(pairs):
    pairs = sorted(pairs)
    steps, values = [step for step, _ in pairs], [value for _, value in pairs]
    line = Line(label="x", colour=0, is_other=False, steps=steps, values=values)
    chart = draw_chart("x", [line])
    assert (chart is None) == all(value is None for value in values)
    if chart is None:
        return
    (drawn,) = chart.lines
    points = [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.e+]+) ([-\d.e+]+)", drawn.path)]
    found = line.finite
    assert (len(points), len(drawn.broken)) == (len(found), len(line.nonfinite))
    assert all(0 <= x <= WIDTH and 4 <= y <= HEIGHT - 4 for x, y in points)
    assert all(0 <= float(x) <= WIDTH for x in (*drawn.broken, *_marks(chart, steps)))
    heights = {value: y for (_, value), (_, y) in zip(found, points, strict=True)}
    if len(heights) > 1:
        assert (heights[min(heights)], heights[max(heights)]) == (HEIGHT - 4, 4)
    assert line.words


@given(st.lists(st.integers(0, 2**63), min_size=1, max_size=90))
def test_every_count_has_a_bar_no_higher_than_its_spark(counts):
    dates = [str(place) for place in range(len(counts))]
    spark = spark_of(dates, dict(zip(dates, counts, strict=True)))
    heights = [int(height) for height in re.findall(r"v-(\d+)", spark.path)]
    assert [height > 1 for height in heights] == [count > 0 for count in counts]
    assert max(heights) == (SPARK_HEIGHT if any(counts) else 1)


@pytest.fixture
def scans(site):
    """Statements that read the steps of a run as peaks."""
    found = []

    def note(_connection, _cursor, statement, *_more):
        if "FROM step" in statement and "GROUP BY" in statement:
            found.append(statement)

    sa.event.listen(site.context.database.engine, "before_cursor_execute", note)
    yield found
    sa.event.remove(site.context.database.engine, "before_cursor_execute", note)


def test_the_peaks_of_an_ended_run_are_read_once_for_its_page_and_for_its_script(site, samples, section, scans):
    run = site.finished(samples.trained(600))
    assert "600 training steps" in words_of(section(run))
    told = site.client.get(f"/v1/runs/{run}/steps?points=500").json
    assert (told["count"], told["exact"], len(told["steps"])) == (600, False, 300)
    assert len(scans) == 1
    site.client.get(f"/v1/runs/{run}/steps?points=400")
    site.client.get(f"/v1/runs/{run}/steps?points=500&steps=0-550")
    assert len(scans) == 3


def test_the_peaks_of_another_version_of_a_run_are_read_again(site, samples, scans):
    run = site.finished(samples.trained(600))
    before = site.client.get(f"/v1/runs/{run}/steps").json
    with site.context.database.begin() as transaction:  # as a record that was judged again
        transaction.execute(sa.update(tables.step).where(tables.step.c.step == 0).values(loss=9.0))
        transaction.execute(sa.update(tables.run).values(version=tables.run.c.version + 1))
    after = site.client.get(f"/v1/runs/{run}/steps").json
    assert (before["loss"][0], after["loss"][0], len(scans)) == (1.0, 9.0, 2)


def test_the_peaks_of_a_run_that_goes_on_are_read_each_time(site, samples, scans):
    public_id = site.finished(samples.trained(600))
    with site.context.database.read() as transaction:
        run = dataclasses.replace(lifecycle.get(transaction, public_id), ended=False)
        for _ in range(2):
            assert site.context.curves.load(transaction, run, 500).count == 600
    assert len(scans) == 2


def test_no_more_than_a_few_curves_are_kept(site, samples, scans):
    run = site.finished(samples.trained(600))
    for points in (*range(500, 500 + MOST_KEPT + 1), 500):
        site.client.get(f"/v1/runs/{run}/steps?points={points}")
    assert len(scans) == MOST_KEPT + 2
    site.client.get(f"/v1/runs/{run}/steps?points={500 + MOST_KEPT}")
    assert len(scans) == MOST_KEPT + 2
