"""Stored runs judged again by today's rules: by the command, and by the reaper's turn; torch stays unloaded."""

import os
import subprocess
import sys

import pytest
import sqlalchemy as sa

from backprobe.record import SCHEMA_VERSION, Environment, Header, Record, Source
from backprobe.rules import Judgement, JudgeOptions, ruleset
from store import tables
from store.access import tenants
from store.admin import figures
from store.database.migrator import upgrade
from store.database.session import Database
from store.findings import findings, rejudging
from store.records.expiry.sweep import delete_records
from store.runs import completion, lifecycle
from workers.upkeep.rejudging import Rejudging

WRITTEN = "x = 1  # backprobe: ignore\n"
"""Today's rules say BP909 of it."""

COMMAND = (
    "import sys\nfrom backprobe.cli import main\ncode = main(['rejudge'])\n"
    "sys.exit('torch was loaded' if 'torch' in sys.modules else code)\n"
)


@pytest.fixture
def database(tmp_path):
    url = f"sqlite:///{tmp_path / 'backprobe.db'}"
    upgrade(url)
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def ended_run(database):
    """`ended_run(tenant_id=2)`: an ended run that older rules found nothing in."""
    header = Header(
        schema_version=SCHEMA_VERSION, backprobe_version="0", tier="full", entry="run",
        started_at="2026-01-01T00:00:00Z", environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    before = Judgement(findings=(), rules_judged=1, not_run=(), ruleset="rs_old")

    def end_run(*, text=WRITTEN, **whose):
        record = Record(header=header, sources=(Source(source=0, path="train.py", sha256="", text=text),))
        sent = lifecycle.Submission(files={"train.py": WRITTEN}, entry="train.py", **whose)
        with database.begin() as writing:
            run = lifecycle.submit(writing, sent).id
        completion.finish(
            database, lifecycle.claim(database, "w1"), completion.Ending(status="succeeded"), record, before
        )
        return run

    return end_run


@pytest.fixture
def two_ended_runs(ended_run):
    """Two of them."""
    return [ended_run(), ended_run()]


def read_findings(database, run) -> list[str]:
    with database.read() as reading:
        return [row.finding.rule.code for row in findings.page(reading, lifecycle.get(reading, run)).items]


def test_the_command_judges_all_newest_first_and_a_second_time_nothing(database, two_ended_runs, tmp_path) -> None:
    environment = {**os.environ, "BACKPROBE_HOME": str(tmp_path), "BACKPROBE_DATABASE_URL": str(database.url)}

    def run_command() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", COMMAND]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    first = run_command()
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("2 runs judged again: 2 findings new, 0 back, 0 gone, 0 as before; 0 could not")
    assert [line.split()[1] for line in first.stderr.splitlines()] == two_ended_runs[::-1]
    assert [read_findings(database, run) for run in two_ended_runs] == [["BP909"]] * 2
    assert run_command().stdout.startswith("0 runs judged again")


def test_the_reapers_turns_judge_what_is_old_and_what_was_asked_for(database, two_ended_runs, monkeypatch) -> None:
    monkeypatch.setattr("workers.upkeep.rejudging.TURN_SECONDS", 600.0)  # both in one turn, however slow the machine
    rejudger = Rejudging(database)
    rejudger.turn()
    assert [read_findings(database, run) for run in two_ended_runs] == [["BP909"]] * 2
    with database.begin() as writing:
        rejudging.ask(writing, two_ended_runs[0])
        version = lifecycle.get(writing, two_ended_runs[0]).version
    rejudger.turn()
    with database.read() as reading:
        run = lifecycle.get(reading, two_ended_runs[0])
        assert rejudging.due(reading) == ()
    assert run.version == version + 1
    assert run.findings.ruleset == ruleset()


def test_a_run_is_judged_again_by_the_rules_that_its_request_chose_and_only_once(database, two_ended_runs) -> None:
    chosen = {"severity": {"unknown-suppression": "note"}}
    with database.begin() as writing:
        writing.execute(sa.update(tables.run).where(tables.run.c.public_id == two_ended_runs[0]).values(rules=chosen))
    assert Rejudging(database).all(None, lambda *_: None).runs == 2
    with database.read() as reading:
        counts = [lifecycle.get(reading, run).findings for run in two_ended_runs]
        assert [(count.warning, count.note) for count in counts] == [(0, 1), (1, 0)]
        assert counts[0].ruleset == ruleset(JudgeOptions(severity=chosen["severity"]))
        assert rejudging.older(reading, ruleset()) == ()


def test_a_run_whose_record_takes_too_long_stays_as_it_was(database, two_ended_runs, monkeypatch) -> None:
    for name, seconds in (("RULE", 0.2), ("NEXT", 0.1), ("ALL", 0.4), ("LAST", 0.2), ("LOOK", 0.01)):
        monkeypatch.setattr(f"workers.judging_budget.{name}_SECONDS", seconds)
    # no statement's head covers an `else`, so each comment looks through all before it: half a minute, whole
    slow = "if 1:\n    x = 1\nelse:  # backprobe: ignore[non-leaf-grad-read]\n    x = 2\n" * 12_000
    header = Header(
        schema_version=SCHEMA_VERSION, backprobe_version="0", tier="full", entry="run",
        started_at="2026-01-01T00:00:00Z", environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    record = Record(header=header, sources=(Source(source=0, path="train.py", sha256="", text=slow),))
    before = Judgement(findings=(), rules_judged=1, not_run=(), ruleset="rs_old")
    with database.begin() as writing:
        lifecycle.submit(writing, lifecycle.Submission(files={"train.py": WRITTEN}, entry="train.py"))
    completion.finish(database, lifecycle.claim(database, "w1"), completion.Ending(status="succeeded"), record, before)
    totals = Rejudging(database).all(1, lambda *_: None)  # the newest comes first
    assert (totals.runs, totals.failed) == (0, 1)


def test_a_run_that_cannot_be_judged_stays_as_it_was_and_does_not_stop_the_others(database, two_ended_runs) -> None:
    with database.begin() as writing:
        key = lifecycle.get(writing, two_ended_runs[1]).key
        delete_records(writing, key.part, key.run_id)
    totals = Rejudging(database).all(None, lambda *_: None)
    assert (totals.runs, totals.failed) == (1, 1)
    assert [read_findings(database, run) for run in two_ended_runs] == [["BP909"], []]


def test_tenants_take_turns_however_many_runs_one_of_them_asks_to_have_judged(database, ended_run) -> None:
    with database.begin() as writing:
        number = tenants.create(writing, "other")
        theirs = {"tenant_id": number, "project_id": tenants.first_project(writing, number)}
    mine, others = [ended_run() for _ in range(3)], [ended_run(**theirs) for _ in range(2)]
    with database.begin() as writing:
        for run in mine:
            rejudging.ask(writing, run)
        for run in others:
            rejudging.ask(writing, run, tenant_id=number)
    order = []
    Rejudging(database).all(5, lambda run, _done, _change: order.append(run))
    assert [run in others for run in order] == [False, True, False, True, False]


POISONED = """
import os, sys
from store.database.session import Database
from workers.upkeep import rejudging

judged = rejudging.judged_in_time

def poisoned(record, options):
    if any("poison" in source.text for source in record.sources):
        os._exit(9)
    return judged(record, options)

rejudging.judged_in_time = poisoned
rejudging.TURN_SECONDS = 600.0
rejudging.Rejudging(Database(sys.argv[1])).turn()
"""


def test_a_record_that_kills_the_reaper_does_so_three_times_and_the_others_are_judged(database, ended_run) -> None:
    """Each start of the reaper is a new process, as its supervisor starts it."""
    poison, honest = ended_run(text="x = 1  # poison\n"), ended_run()
    with database.begin() as writing:
        rejudging.ask(writing, poison)

    def started() -> int:
        return subprocess.run([sys.executable, "-c", POISONED, str(database.url)], check=False, timeout=120).returncode

    assert [started() for _ in range(4)] == [9, 9, 9, 0]
    assert read_findings(database, honest) == ["BP909"]
    with database.read() as reading:
        run = lifecycle.get(reading, poison)
        assert (run.findings.judging_attempts, run.findings.quarantined) == (3, True)
        told = {figure.name: figure.value for figure in figures.current(reading, database)}
    assert (told["judgings_unfinished"], told["judgings_quarantined"]) == (1, 1)


def test_the_command_judges_what_is_in_quarantine_if_it_is_told_to(
    database, ended_run, tmp_path, monkeypatch, capsys
) -> None:
    from backprobe.cli import main

    run = ended_run()
    with database.begin() as writing:
        writing.execute(sa.update(tables.run).values(judge_attempts=3))
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))
    monkeypatch.setenv("BACKPROBE_DATABASE_URL", str(database.url))
    assert main(["rejudge"]) == 0
    assert capsys.readouterr().out.startswith("0 runs judged again")
    assert main(["rejudge", "--quarantined"]) == 0
    assert capsys.readouterr().out.startswith("1 runs judged again")
    assert read_findings(database, run) == ["BP909"]


def test_a_run_that_goes_on_and_kills_its_judge_is_left_alone(database, monkeypatch) -> None:
    from store.recorders.judging import OpenRun
    from workers import watched_judging

    claim = _watched(database)
    open_run = OpenRun(claim=claim, frames=2)

    class ProcessEnds(BaseException):
        """The process ends."""

    def end(*_args: object) -> None:
        raise ProcessEnds

    monkeypatch.setattr(watched_judging, "record_so_far", end)
    judging = watched_judging.WatchedJudging(database)
    for _ in range(3):
        with pytest.raises(ProcessEnds):
            judging._judge(open_run)
    judging._judge(open_run)
    monkeypatch.setattr(watched_judging, "record_so_far", lambda *_: None)
    with database.begin() as writing:
        writing.execute(sa.update(tables.run).values(judge_attempts=1))
    judging._judge(open_run)
    with database.read() as reading:
        assert reading.execute(sa.select(tables.run.c.judge_attempts)).scalars().all() == [0]


def _watched(database):
    """A claim of a run that a recorder has begun."""
    with database.begin() as writing:
        run = lifecycle.submit(writing, lifecycle.Submission(files={"train.py": WRITTEN}, entry="train.py")).id
    claim = lifecycle.claim(database, "w1")
    assert claim.public_id == run
    return claim
