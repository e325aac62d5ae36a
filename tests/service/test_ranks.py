"""The ranks of a distributed job beside each other: over REST and on their page, on both databases."""

from __future__ import annotations

import re

import msgspec
import pytest
import sqlalchemy as sa

from backprobe.client import new_run_id
from backprobe.record import Moment, OptimizerEvent, Step, dumps, split
from store import tables
from store.database.ids import milliseconds, new_id
from store.queries import ranks
from workers.upkeep.rejudging import Rejudging

MEDIA = "application/vnd.backprobe.record"
JOB = {"group": "job-7", "world_size": "3"}


@pytest.fixture
def rank(site, samples):
    """`rank(number, norms)`: the run of a rank whose steps had these gradient norms."""

    def record_rank(
        number, norms=(), *, run=None, labels=JOB, ends=True, anomaly=None, losses=None, clipped=(), **parts
    ):
        run = run or new_run_id()
        steps = tuple(
            Step(
                step=at, sampled=False, why="not-sampled", grad_norm=norm, loss=norm / 2 if losses is None else losses[at], duration_ns=2_000_000,
                anomaly=anomaly if at == 1 else None,
            )
            for at, norm in enumerate(norms)
        )  # fmt: skip
        record = msgspec.structs.replace(samples.tutorial(), steps=steps, **parts)
        if clipped:
            last = record.moments[-1].moment
            moments = tuple(
                Moment(moment=last + 1 + at, kind="optimizer-step", time_ns=at, step=at) for at in range(len(clipped))
            )
            events = tuple(
                OptimizerEvent(
                    n=at, optimizer=None, kind="clip_grad_norm", moment=last + 1 + at, limit=1.0, total_norm=norm
                )
                for at, norm in enumerate(clipped)
            )
            record = msgspec.structs.replace(record, moments=record.moments + moments, optimizer_events=events)
        made = site.client.put(f"/v1/runs/{run}", json={"labels": {**labels, "rank": str(number)}})
        assert made.status_code == 201, made.text
        for n, frame in enumerate(split(dumps(record))):
            sent = site.client.put(f"/v1/runs/{run}/frames/{n}", data=frame, content_type=MEDIA)
            assert sent.status_code == 204, sent.text
        if ends:
            assert site.client.post(f"/v1/runs/{run}/end", json={}).status_code == 200
        return run

    return record_rank


@pytest.fixture
def get_ranks(site):
    def load_ranks(run, status=200):
        answer = site.client.get(f"/v1/runs/{run}/ranks")
        assert answer.status_code == status, answer.text
        return answer.json

    return load_ranks


@pytest.fixture
def judge(site):
    """`judge()`: every run that has ended."""

    def all_of_them():
        judging = Rejudging(site.context.database)
        while any(
            run["ended"] and run["findings"]["ruleset"] is None for run in site.client.get("/v1/runs").json["items"]
        ):
            judging.turn()

    return all_of_them


def test_each_rank_is_a_row_and_one_that_was_not_recorded_is_missing(rank, get_ranks):
    second, first = rank(1, (1.0, 0.5, 0.25)), rank(0, (1.0, 0.5), anomaly="non-finite")
    job = get_ranks(second)
    assert (job["group"], job["world_size"], job["missing"], job["restart"]) == ("job-7", 3, [2], None)
    assert [(row["rank"], row["run"], row["steps"]) for row in job["items"]] == [(0, first, 2), (1, second, 3)]
    assert [(row["loss"], row["grad_norm"]) for row in job["items"]] == [(0.25, 0.5), (0.125, 0.25)]
    assert [row["step_seconds"] for row in job["items"]] == [0.002, 0.002]
    assert [(row["anomaly"], row["anomaly_step"]) for row in job["items"]] == [("non-finite", 1), (None, None)]
    assert job["first_difference"] is None
    assert get_ranks(first) == job


def test_the_first_step_whose_norms_differ_is_told_with_all_norms(rank, get_ranks):
    rank(0, (1.0, 0.5, 0.25, 9.0))
    rank(1, (1.0, 0.5004, 0.25))  # 8 parts in 10,000: rounding
    run = rank(2, (1.0, 0.5, 0.26, 0.1))  # 4 %
    assert get_ranks(run)["first_difference"] == {
        "step": 2,
        "norms": [{"rank": 0, "grad_norm": 0.25}, {"rank": 1, "grad_norm": 0.25}, {"rank": 2, "grad_norm": 0.26}],
    }


NAN = float("nan")


def test_ranks_that_are_all_not_finite_do_not_differ_and_the_one_where_it_began_is_told(rank, get_ranks):
    rank(0, (1.0, 0.5, NAN), losses=(1.0, 0.5, 0.25))
    run = rank(1, (1.0, 0.5, NAN), losses=(1.0, 0.5, NAN))
    assert get_ranks(run)["first_difference"] is None
    assert get_ranks(run)["first_nonfinite"] == {"step": 2, "of": "loss", "ranks": [1]}


def test_a_norm_that_is_not_finite_differs_from_one_that_is(rank, get_ranks):
    rank(0, (1.0, 0.5, float("inf")))
    run = rank(1, (1.0, NAN, NAN))
    difference = get_ranks(run)["first_difference"]
    assert difference["step"] == 1
    assert difference["norms"] == [{"rank": 0, "grad_norm": 0.5}, {"rank": 1, "grad_norm": "NaN"}]
    assert get_ranks(run)["first_nonfinite"] == {"step": 1, "of": "loss", "ranks": [1]}


def test_norms_that_clipping_made_equal_are_compared_as_they_were_before_it(rank, get_ranks):
    rank(0, (1.0, 1.0), clipped=(4.0, 5.0))
    run = rank(1, (1.0, 1.0), clipped=(4.0, 6.0))
    assert get_ranks(run)["first_difference"]["norms"] == [{"rank": 0, "grad_norm": 5.0}, {"rank": 1, "grad_norm": 6.0}]


def test_runs_of_another_job_and_of_another_time_are_none_of_its_ranks(rank, get_ranks):
    run = rank(0, (1.0,))
    rank(1, (1.0,), labels={**JOB, "group": "job-8"})
    rank(1, (1.0,), labels={**JOB, "restart": "1"})
    rank(1, (1.0,), labels={**JOB, "world_size": "2"})
    rank(1, (1.0,), run=new_id("run", milliseconds(run) - 16 * 60_000))
    assert [row["rank"] for row in get_ranks(run)["items"]] == [0]
    nearest = rank(1, (1.0,), run=new_id("run", milliseconds(run) - 60_000))
    rank(1, (1.0,), run=new_id("run", milliseconds(run) - 10 * 60_000))
    assert [row["run"] for row in get_ranks(run)["items"]] == [run, nearest]


def test_the_ranks_of_an_older_job_are_told_however_often_its_name_came_again(rank, get_ranks, monkeypatch):
    monkeypatch.setattr(ranks, "MOST_RANKS", 2)  # of which many times as many runs are looked at
    at = milliseconds(new_run_id()) - 40 * 60_000
    job = [rank(number, run=new_id("run", at + shift)) for number, shift in ((0, 0), (1, -15 * 60_000))]
    for _ in range(9):
        rank(1)
    assert [row["run"] for row in get_ranks(job[0])["items"]] == job


def test_a_trial_is_no_rank_of_the_job_that_it_repeats(site, rank, get_ranks):
    run, trial = rank(0), rank(1)
    with site.context.database.begin() as transaction:
        transaction.execute(tables.run.update().where(tables.run.c.public_id == trial).values(origin="trial"))
    assert [row["run"] for row in get_ranks(run)["items"]] == [run]


def test_a_rank_that_goes_on_without_a_record_has_a_row(rank, get_ranks):
    rank(0, (1.0,), ends=False)
    items = get_ranks(rank(1, (1.0,)))["items"]
    assert [(row["status"], row["steps"]) for row in items] == [("running", None), ("succeeded", 1)]


def test_a_finding_that_only_some_ranks_have_is_told_with_them(site, rank, get_ranks, judge):
    with_it, without = rank(0), rank(2, grad_reads=())
    third = rank(1)
    judge()
    (finding,) = site.client.get(f"/v1/runs/{with_it}/findings").json["items"]
    assert site.client.get(f"/v1/runs/{without}/findings").json["items"] == []
    (found,) = get_ranks(third)["findings"]
    assert (found["fingerprint"], found["code"], found["ranks"]) == (finding["fingerprint"], "BP101", [0, 1])
    assert "rank 0, 1" in site.client.get(f"/runs/{third}/ranks").text


def test_a_finding_that_all_ranks_have_is_not_told_nor_one_beside_a_rank_that_is_not_judged(rank, get_ranks, judge):
    run = rank(0)
    rank(1)
    judge()
    rank(2, grad_reads=())
    assert get_ranks(run)["findings"] == []


def test_a_finding_that_all_ranks_have_is_not_told_however_many_others_there_are(site, rank, get_ranks, judge):
    run = rank(0)
    rank(1)
    judge()
    (shared,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    first = sa.select(tables.finding).order_by(tables.finding.c.run_id).limit(1)
    with site.context.database.begin() as transaction:
        row = dict(transaction.execute(first).mappings().one())
        del row["id"]
        others = [
            row | {"n": n, "public_id": f"f_{n}", "fingerprint": f"other {n:06}", "level": "note"}
            for n in range(1, 301)
        ]
        transaction.execute(sa.insert(tables.finding), others)
    found = get_ranks(run)["findings"]
    assert shared["fingerprint"] not in [row["fingerprint"] for row in found]
    assert [row["fingerprint"] for row in found] == [f"other {n:06}" for n in range(1, 101)]
    assert {tuple(row["ranks"]) for row in found} == {(0,)}


@pytest.mark.parametrize(
    "labels", [{}, {"group": "a", "world_size": "x"}, {"group": "a", "world_size": "0"}, {"world_size": "3"}]
)
def test_a_run_that_is_no_rank_is_told_so(rank, get_ranks, labels):
    assert get_ranks(rank(0, labels=labels), 404)["code"] == "not-found"


def test_the_page_shows_the_ranks_and_the_run_leads_to_it(site, rank):
    run = rank(0, (1.0, 0.5))
    rank(1, (1.0, 0.7), labels={**JOB, "group": JOB["group"]})
    page = site.client.get(f"/runs/{run}/ranks").text
    assert "Gradient norms differ from step 1 on" in page
    assert "2 of 3" in page
    assert f'href="/runs/{run}/ranks"' in site.client.get(f"/runs/{run}").text


def test_the_page_has_no_column_of_what_no_rank_has_told(site, rank):
    def columns(run):
        return re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', site.client.get(f"/runs/{run}/ranks").text)

    told = rank(0, (1.0, 0.5))
    silent = rank(0, labels={**JOB, "group": "silent"})
    assert columns(told) == ["Rank", "Run", "Status", "Findings", "Steps", "A step takes", "Loss", "Gradient norm", "Last report"]  # fmt: skip
    assert columns(silent) == ["Rank", "Run", "Status", "Findings", "Last report"]


def test_what_a_recorder_calls_its_job_is_escaped(site, rank):
    page = site.client.get(f"/runs/{rank(0, labels={**JOB, 'group': '<b>job</b>'})}/ranks").text
    assert "<b>job" not in page
    assert "&lt;b&gt;job" in page
