"""Which runs a rule found something in, over all runs of a tenant."""

import pytest
import sqlalchemy as sa

from store import queries, tables


@pytest.fixture
def ask_findings(database):
    def find_runs(rule, **more):
        with database.read() as reading:
            return [(row.run, row.findings) for row in queries.runs_with(reading, rule, **more)]

    return find_runs


def test_the_runs_are_counted_by_rule_those_seen_last_first(database, ended_run, a_judgement, ask_findings):
    runs = [ended_run(judgement=a_judgement).id for _ in range(3)]
    rule = a_judgement.findings[0].rule.name
    times = sum(finding.rule.name == rule for finding in a_judgement.findings)
    assert ask_findings(rule) == [(run, times) for run in runs[::-1]]
    assert ask_findings(rule, limit=2) == [(run, times) for run in runs[:0:-1]]
    assert ask_findings("no-such-rule") == ask_findings(rule, tenant_id=77) == []


def test_what_was_stored_before_the_days_asked_for_is_left_out(database, ended_run, a_judgement, ask_findings):
    runs = [ended_run(judgement=a_judgement) for _ in range(2)]
    rule = a_judgement.findings[0].rule.name
    old = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-31 days')" if database.sqlite else "now() - interval '31 days'"
    with database.begin() as transaction:
        moved = sa.update(tables.finding).values(created_at=sa.literal_column(old))
        transaction.execute(moved.where(tables.finding.c.run_id == runs[0].run_id))
    assert [run for run, _ in ask_findings(rule)] == [runs[1].id]
    assert [run for run, _ in ask_findings(rule, days=32)] == [runs[1].id, runs[0].id]
