"""Stored runs judged again, on both databases: what stays, what is new, what is gone and comes back, and who may write."""

from dataclasses import replace

import msgspec
import pytest
import sqlalchemy as sa

from backprobe.rules import Judgement
from store import tables
from store.database.session import Database
from store.findings import findings, judging_attempts, rejudging
from store.queries.checks import load_checks
from store.runs import completion


@pytest.fixture
def stored_run(database, submit, claim, a_record, a_judgement, some_whys):
    """An ended run with three findings."""
    run = submit()
    completion.finish(database, claim(), completion.Ending(status="succeeded"), a_record, a_judgement, some_whys)
    return run


@pytest.fixture
def show_findings(database, look):
    """`show_findings(run)`: its findings by rule; `gone=True`: those that are gone."""

    def rows(run, *, gone=False):
        with database.read() as reading:
            return {row.finding.rule.name: row for row in findings.page(reading, look(run), gone=gone).items}

    return rows


def older(database: Database, ruleset: str = "rs_new"):
    with database.read() as reading:
        return rejudging.older(reading, ruleset)


def newer(a_judgement: Judgement, drop: str, ruleset: str = "rs_new", **change) -> Judgement:
    """The judgement again, without a finding, and one of a new fingerprint and a worse message besides."""
    kept = [msgspec.structs.replace(finding, **change) for finding in a_judgement.findings if finding.rule.name != drop]
    more = msgspec.structs.replace(kept[0], fingerprint=f"backprobe/v1:{'e' * 16}", message="seen by newer rules")
    return Judgement(findings=(more, *kept), rules_judged=5, not_run=(), ruleset=ruleset)


def again(database, due, judgement):
    record = rejudging.record_of(database, due)
    return rejudging.judged_again(database, due, record, judgement, {})


def test_an_unnamed_program_s_findings_are_known_again_by_the_newer_rules(
    database, submit, claim, show_findings, a_record, a_judgement, some_whys
) -> None:
    run = submit(named=False)
    completion.finish(database, claim(), completion.Ending(status="succeeded"), a_record, a_judgement, some_whys)
    before = {name: row.id for name, row in show_findings(run).items()}
    (due,) = older(database)
    assert again(database, due, replace(a_judgement, ruleset="rs_new")) == rejudging.Change(
        same=3, new=0, gone=0, back=0
    )
    assert {name: row.id for name, row in show_findings(run).items()} == before


def test_a_finding_keeps_its_id_and_one_that_is_dropped_is_kept_as_gone(
    database, stored_run, show_findings, look, a_judgement
) -> None:
    before, at = show_findings(stored_run), look(stored_run)
    (due,) = older(database)
    change = again(database, due, newer(a_judgement, "other", message="told better"))
    assert change == rejudging.Change(same=2, new=1, gone=1, back=0)
    after = show_findings(stored_run)
    known = next(name for name in before if name not in {"other", "freed-graph"})
    assert after[known].id == before[known].id
    assert after[known].finding.message == "told better"
    assert {row.ruleset for row in after.values()} == {"rs_new"}
    (gone,) = show_findings(stored_run, gone=True).values()
    assert gone.id == before["other"].id
    assert gone.gone.ruleset == "rs_new"
    assert gone.ruleset == "rs_test"
    assert gone.json()["gone"] == {"at": gone.gone.at, "ruleset": "rs_new"}
    run = look(stored_run)
    assert run.version == at.version + 1
    assert (run.findings.ruleset, run.findings.rules_judged, run.findings.rules_not_run) == ("rs_new", 5, 0)
    assert (run.findings.error, run.findings.warning, run.findings.note) == (2, 1, 0)
    assert older(database) == ()


def test_one_that_is_gone_comes_back_under_its_id(database, stored_run, show_findings, a_judgement) -> None:
    before = show_findings(stored_run)
    again(database, older(database)[0], newer(a_judgement, "other"))
    (due,) = older(database, "rs_third")
    change = again(database, due, msgspec.convert({**vars_of(a_judgement), "ruleset": "rs_third"}, Judgement))
    assert (change.back, change.gone, change.new, change.same) == (1, 1, 0, 2)
    after = show_findings(stored_run)
    assert {name: row.id for name, row in after.items()} == {name: row.id for name, row in before.items()}
    assert all(row.gone is None for row in after.values())


def test_newer_rules_say_again_in_what_state_each_invariant_is(database, stored_run, look, a_judgement) -> None:
    (check,) = a_judgement.checks
    repaired = msgspec.structs.replace(check, state="holds", findings=())
    again(database, older(database)[0], replace(newer(a_judgement, "other"), checks=(repaired,)))
    with database.read() as reading:
        told = load_checks(reading, look(stored_run))
    assert [(row.name, row.state, row.findings) for row in told.items] == [("leaf", "holds", [])]


def vars_of(judgement: Judgement) -> dict:
    return {name: getattr(judgement, name) for name in ("findings", "rules_judged", "not_run", "ruleset")}


def test_what_is_gone_is_no_longer_told_of_a_line_or_a_tensor(database, stored_run, look, a_judgement) -> None:
    from store import queries

    again(database, older(database)[0], Judgement(findings=(), rules_judged=5, not_run=(), ruleset="rs_new"))
    with database.read() as reading:
        run = look(stored_run)
        assert all(row.findings == () for row in queries.tensors(reading, run).items)
        assert all(line.findings == () for line in queries.source(reading, run).lines)


def test_of_two_who_judge_one_writes(database, stored_run, a_judgement) -> None:
    (due,) = older(database)
    assert again(database, due, newer(a_judgement, "other")) is not None
    assert again(database, due, newer(a_judgement, "freed-graph", "rs_third")) is None


def test_the_newest_come_first_and_those_asked_for_before_them(
    database, submit, claim, look, a_record, a_judgement
) -> None:
    ids = []
    for _ in range(3):
        ids.append(submit().id)
        completion.finish(database, claim(), completion.Ending(status="succeeded"), a_record, a_judgement)
    assert [run.public_id for run in older(database)] == ids[::-1]
    with database.read() as reading:
        assert [run.public_id for run in rejudging.older(reading, "rs_new", below=older(database)[0].number)] == ids[
            1::-1
        ]
        assert rejudging.older(reading, "rs_test") == ()
        assert rejudging.due(reading) == ()
    with database.begin() as writing:
        assert rejudging.ask(writing, ids[1]).id == ids[1]
        assert rejudging.ask(writing, "run_of_nobody") is None
    with database.read() as reading:
        assert [run.public_id for run in rejudging.due(reading)] == [ids[1]]
    rejudging.leave(database, older(database)[1])
    with database.read() as reading:
        assert rejudging.due(reading) == ()


def test_a_run_without_a_record_or_not_ended_is_left_alone(database, submit, claim, a_judgement) -> None:
    waiting = submit()
    with database.begin() as writing:
        assert rejudging.ask(writing, waiting.id).id == waiting.id
    completion.finish(database, claim(), completion.Ending(status="succeeded"), None, None)
    assert older(database) == ()
    with database.read() as reading:
        assert rejudging.due(reading) == ()


def test_why_a_tensor_has_no_gradient_is_told_anew(database, stored_run, a_judgement, some_whys) -> None:
    def read_changes():
        with database.read() as reading:
            return reading.execute(sa.select(tables.tensor.c.why_none)).scalars().all()

    assert any(read_changes())
    again(database, older(database)[0], newer(a_judgement, "other"))
    assert not any(read_changes())


def begun_attempts(database, due, count=judging_attempts.MOST_ATTEMPTS):
    """So many judgings begin, and the process ends each time."""
    return [judging_attempts.begin_attempt(database, due.number) for _ in range(count)]


def test_a_record_that_ends_its_judge_three_times_is_left_alone_and_the_run_says_so(database, stored_run, look):
    (due,) = older(database)
    with database.begin() as transaction:
        rejudging.ask(transaction, stored_run.id)
    version = look(stored_run).version
    assert begun_attempts(database, due, 2) == [True, True]
    shown = look(stored_run)
    assert (shown.findings.judging_attempts, shown.findings.quarantined, shown.version) == (2, False, version)
    assert begun_attempts(database, due, 2) == [True, False]
    shown = look(stored_run)
    assert (shown.findings.judging_attempts, shown.findings.quarantined, shown.version) == (3, True, version + 1)
    with database.begin() as transaction:
        assert rejudging.ask(transaction, stored_run.id).version == version + 1
        assert rejudging.due(transaction) == rejudging.due(transaction, served=0) == ()
        assert rejudging.older(transaction, "rs_new") == ()
        assert judging_attempts.count_unfinished(transaction) == (1, 1)


def test_a_judgement_on_the_last_attempt_is_written_and_ends_the_count(database, stored_run, look, a_judgement):
    (due,) = older(database)
    begun_attempts(database, due)
    assert again(database, due, replace(a_judgement, ruleset="rs_new")) is not None
    assert (look(stored_run).findings.judging_attempts, look(stored_run).findings.ruleset) == (0, "rs_new")


def test_a_record_that_is_left_as_it_is_or_whose_judge_goes_on_has_no_attempt(database, stored_run, look):
    (due,) = older(database)
    begun_attempts(database, due, 2)
    rejudging.leave(database, due)
    assert look(stored_run).findings.judging_attempts == 0
    begun_attempts(database, due, 1)
    judging_attempts.end_attempt(database, due.number)
    assert look(stored_run).findings.judging_attempts == 0


def test_the_operator_takes_a_record_out_of_quarantine(database, stored_run):
    (due,) = older(database)
    begun_attempts(database, due)
    with database.begin() as transaction:
        assert judging_attempts.release_all(transaction) == 1
        assert judging_attempts.release_all(transaction) == 0
    assert [due.public_id for due in older(database)] == [stored_run.id]


def test_a_record_that_ended_its_judge_comes_after_the_others(database, submit, claim, a_record, a_judgement):
    runs = [submit(), submit()]
    for _ in runs:
        completion.finish(database, claim(), completion.Ending(status="succeeded"), a_record, a_judgement)
    with database.begin() as transaction:
        for run in runs:
            rejudging.ask(transaction, run.id)
        first = rejudging.due(transaction)[0]
    begun_attempts(database, first, 1)
    with database.read() as reading:
        assert [run.public_id for run in rejudging.due(reading)][-1] == first.public_id
