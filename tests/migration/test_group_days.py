"""The days of groups: counted from what the level before stored, then by triggers, also what the release before writes."""

from __future__ import annotations

import sqlalchemy as sa

from backprobe.rules.framework.manual import manual
from store.database.migrator import downgrade, upgrade
from store.findings import group_rows
from store.tables import finding, finding_group, finding_group_day
from tests.support import samples
from tests.support.site import make_site

BEFORE = "0022"


def load_days(site):
    query = sa.select(
        finding_group.c.public_id, finding_group_day.c.rule, finding_group_day.c.day, finding_group_day.c.runs
    )
    query = query.join_from(finding_group_day, finding_group, finding_group.c.id == finding_group_day.c.group_id)
    with site.context.database.read() as reading:
        return sorted(tuple(row) for row in reading.execute(query))


def test_the_migration_counts_what_is_stored_and_triggers_count_on(empty_url, tmp_path):
    upgrade(empty_url)
    site = make_site(tmp_path, empty_url)
    today = group_rows.last_days()[-1]
    site.finished(judgement=samples.make_judgement("BP101", "BP101", "BP102"))
    site.finished(judgement=samples.judged_with_fix(samples.tutorial()))
    (tried, *_) = site.client.get("/v1/findings?rule=BP101&limit=1").json["items"]
    trial = site.client.post(f"/v1/findings/{tried['id']}/trials", json={}).json["id"]
    site.finish(trial, samples.tutorial())
    counted = load_days(site)
    assert sorted(runs for *_, runs in counted) == [1, 1, 2]  # the trial is not counted
    assert {(rule, day) for _, rule, day, _ in counted} == {
        (manual(code).rule.name, today) for code in ("BP101", "BP102")
    }
    with site.context.database.begin() as transaction:
        number = sa.select(finding.c.run_id).order_by(finding.c.id).limit(1).scalar_subquery()
        old = finding.update().where(finding.c.run_id == number)
        transaction.execute(old.values(created_at="2026-01-31T23:59:59.999Z"))
    downgrade(empty_url, BEFORE)
    upgrade(empty_url)
    stored = load_days(site)
    assert sorted((day, runs) for *_, day, runs in stored) == [
        ("2026-01-31", 1), ("2026-01-31", 1), ("2026-01-31", 1), (today, 1),
    ]  # fmt: skip
    site.finished(judgement=samples.make_judgement("BP101"))
    assert sum(runs for *_, runs in load_days(site)) == 5
    site.context.close()
