"""The ranks of a distributed job beside each other: over REST and on their page, on both databases."""

from __future__ import annotations

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

    def one(number, norms=(), *, run=None, labels=JOB, ends=True, anomaly=None, losses=None, clipped=(), **parts):
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

    return one


@pytest.fixture
def told(site):
    def one(run, status=200):
        answer = site.client.get(f"/v1/runs/{run}/ranks")
        assert answer.status_code == status, answer.text
        return answer.json

    return one


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


def test_each_rank_is_a_row_and_one_that_was_not_recorded_is_missing(rank, told):
    second, first = rank(1, (1.0, 0.5, 0.25)), rank(0, (1.0, 0.5), anomaly="non-finite")
    job = told(second)
    assert (job["group"], job["world_size"], job["missing"], job["restart"]) == ("job-7", 3, [2], None)
    assert [(one["rank"], one["run"], one["steps"]) for one in job["items"]] == [(0, first, 2), (1, second, 3)]
    assert [(one["loss"], one["grad_norm"]) for one in job["items"]] == [(0.25, 0.5), (0.125, 0.25)]
    assert [one["step_seconds"] for one in job["items"]] == [0.002, 0.002]
    assert [(one["anomaly"], one["anomaly_step"]) for one in job["items"]] == [("non-finite", 1), (None, None)]
    assert job["first_difference"] is None
    assert told(first) == job


def test_the_first_step_whose_norms_differ_is_told_with_all_norms(rank, told):
    rank(0, (1.0, 0.5, 0.25, 9.0))
    rank(1, (1.0, 0.5004, 0.25))  # 8 parts in 10,000: rounding
    run = rank(2, (1.0, 0.5, 0.26, 0.1))  # 4 %
    assert told(run)["first_difference"] == {
        "step": 2,
        "norms": [{"rank": 0, "grad_norm": 0.25}, {"rank": 1, "grad_norm": 0.25}, {"rank": 2, "grad_norm": 0.26}],
    }


NAN = float("nan")


def test_ranks_that_are_all_not_finite_do_not_differ_and_the_one_where_it_began_is_told(rank, told):
    rank(0, (1.0, 0.5, NAN), losses=(1.0, 0.5, 0.25))
    run = rank(1, (1.0, 0.5, NAN), losses=(1.0, 0.5, NAN))
    assert told(run)["first_difference"] is None
    assert told(run)["first_nonfinite"] == {"step": 2, "of": "loss", "ranks": [1]}


def test_a_norm_that_is_not_finite_differs_from_one_that_is(rank, told):
    rank(0, (1.0, 0.5, float("inf")))
    run = rank(1, (1.0, NAN, NAN))
    difference = told(run)["first_difference"]
    assert difference["step"] == 1
    assert difference["norms"] == [{"rank": 0, "grad_norm": 0.5}, {"rank": 1, "grad_norm": "NaN"}]
    assert told(run)["first_nonfinite"] == {"step": 1, "of": "loss", "ranks": [1]}


def test_norms_that_clipping_made_equal_are_compared_as_they_were_before_it(rank, told):
    rank(0, (1.0, 1.0), clipped=(4.0, 5.0))
    run = rank(1, (1.0, 1.0), clipped=(4.0, 6.0))
    assert told(run)["first_difference"]["norms"] == [{"rank": 0, "grad_norm": 5.0}, {"rank": 1, "grad_norm": 6.0}]


def test_runs_of_another_job_and_of_another_time_are_none_of_its_ranks(rank, told):
    run = rank(0, (1.0,))
    rank(1, (1.0,), labels={**JOB, "group": "job-8"})
    rank(1, (1.0,), labels={**JOB, "restart": "1"})
    rank(1, (1.0,), labels={**JOB, "world_size": "2"})
    rank(1, (1.0,), run=new_id("run", milliseconds(run) - 16 * 60_000))
    assert [one["rank"] for one in told(run)["items"]] == [0]
    nearest = rank(1, (1.0,), run=new_id("run", milliseconds(run) - 60_000))
    rank(1, (1.0,), run=new_id("run", milliseconds(run) - 10 * 60_000))
    assert [one["run"] for one in told(run)["items"]] == [run, nearest]


def test_the_ranks_of_an_older_job_are_told_however_often_its_name_came_again(rank, told, monkeypatch):
    monkeypatch.setattr(ranks, "MOST_RANKS", 2)  # of which many times as many runs are looked at
    at = milliseconds(new_run_id()) - 40 * 60_000
    job = [rank(number, run=new_id("run", at + shift)) for number, shift in ((0, 0), (1, -15 * 60_000))]
    for _ in range(9):
        rank(1)
    assert [one["run"] for one in told(job[0])["items"]] == job


def test_a_trial_is_no_rank_of_the_job_that_it_repeats(site, rank, told):
    run, trial = rank(0), rank(1)
    with site.context.database.begin() as transaction:
        transaction.execute(tables.run.update().where(tables.run.c.public_id == trial).values(origin="trial"))
    assert [one["run"] for one in told(run)["items"]] == [run]


def test_a_rank_that_goes_on_without_a_record_has_a_row(rank, told):
    rank(0, (1.0,), ends=False)
    items = told(rank(1, (1.0,)))["items"]
    assert [(one["status"], one["steps"]) for one in items] == [("running", None), ("succeeded", 1)]


def test_a_finding_that_only_some_ranks_have_is_told_with_them(site, rank, told, judge):
    with_it, without = rank(0), rank(2, grad_reads=())
    third = rank(1)
    judge()
    (finding,) = site.client.get(f"/v1/runs/{with_it}/findings").json["items"]
    assert site.client.get(f"/v1/runs/{without}/findings").json["items"] == []
    (found,) = told(third)["findings"]
    assert (found["fingerprint"], found["code"], found["ranks"]) == (finding["fingerprint"], "BP101", [0, 1])
    assert "rank 0, 1" in site.client.get(f"/runs/{third}/ranks").text


def test_a_finding_that_all_ranks_have_is_not_told_nor_one_beside_a_rank_that_is_not_judged(rank, told, judge):
    run = rank(0)
    rank(1)
    judge()
    rank(2, grad_reads=())
    assert told(run)["findings"] == []


def test_a_finding_that_all_ranks_have_is_not_told_however_many_others_there_are(site, rank, told, judge):
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
    found = told(run)["findings"]
    assert shared["fingerprint"] not in [one["fingerprint"] for one in found]
    assert [one["fingerprint"] for one in found] == [f"other {n:06}" for n in range(1, 101)]
    assert {tuple(one["ranks"]) for one in found} == {(0,)}


@pytest.mark.parametrize(
    "labels", [{}, {"group": "a", "world_size": "x"}, {"group": "a", "world_size": "0"}, {"world_size": "3"}]
)
def test_a_run_that_is_no_rank_is_told_so(rank, told, labels):
    assert told(rank(0, labels=labels), 404)["code"] == "not-found"


def test_the_page_shows_the_ranks_and_the_run_leads_to_it(site, rank):
    run = rank(0, (1.0, 0.5))
    rank(1, (1.0, 0.7), labels={**JOB, "group": JOB["group"]})
    page = site.client.get(f"/runs/{run}/ranks").text
    assert "Gradient norms differ from step 1 on" in page
    assert "2 of 3" in page
    assert f'href="/runs/{run}/ranks"' in site.client.get(f"/runs/{run}").text


def test_what_a_recorder_calls_its_job_is_escaped(site, rank):
    page = site.client.get(f"/runs/{rank(0, labels={**JOB, 'group': '<b>job</b>'})}/ranks").text
    assert "<b>job" not in page
    assert "&lt;b&gt;job" in page
