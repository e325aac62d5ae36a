"""Findings: what rules say about a run; and their groups, the same finding over all runs of a project."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import event

from backprobe.severity import CONFIDENCES, LEVELS
from store.tables.base.metadata import METADATA
from store.tables.base.types import i2, i4, identity, is_one_of, json, public_id, refers, text, time

finding: Final = sa.Table(
    "finding",
    METADATA,
    identity(),
    public_id("f"),
    refers("run_id", "run", "About which run."),
    i2("attempt", "About which attempt's record."),
    refers("tenant_id", "tenant", "Whose it is."),
    refers("project_id", "project", "Where it belongs."),
    i4("n", "Its place in the judgement: worst first, then in order of the source."),
    text("fingerprint", "Identity across runs and edits elsewhere."),
    text("rule", "Name of the rule, kebab case."),
    text("code", "Code of the rule, BP101."),
    text("ruleset", "Digest of the rules that said so."),
    text("level", "How bad: error, warning or note."),
    text("confidence", "How sure: proven, likely or heuristic."),
    text("message", "What was seen, why it matters, what to change."),
    text("path", "File of its location, relative POSIX."),
    i4("line", "First line of its location, 1-based."),
    json("location", "path, region, text, function."),
    json("related", "Other places of the story, in order."),
    json("stacks", "Call stacks, each with its part in the story."),
    json("evidence", "The facts that carry the verdict."),
    json("fixes", "What to change."),
    json("consequences", "Findings of other rules that follow from this one."),
    json("suppressed", "Why it is not to be shown; NULL: it is shown.", null=True),
    i4("tensor", "The tensor it is about; NULL: none.", null=True),
    i4("call", "The backward call it is about; NULL: none.", null=True),
    i4("moment", "The moment it is about; NULL: none.", null=True),
    i4("count", "How often the same was found."),
    i4("first_step", "Optimizer steps finished at the first; NULL: not known.", null=True),
    i4("last_step", "Optimizer steps finished at the last; NULL: not known.", null=True),
    time("created_at", "When it was stored."),
    time("gone_at", "When newer rules no longer said so; NULL: they still do.", null=True),
    text("gone_ruleset", "Those rules; NULL as gone_at.", null=True),
    is_one_of("level", LEVELS),
    is_one_of("confidence", CONFIDENCES),
    comment="A rule's verdict at a source line of one run.",
)
sa.Index("finding_of_rule", finding.c.tenant_id, finding.c.rule, finding.c.created_at.desc(), finding.c.run_id)
sa.Index("finding_of_run", finding.c.run_id, finding.c.attempt, finding.c.level, finding.c.line)
sa.Index("finding_of_group", finding.c.project_id, finding.c.fingerprint, finding.c.created_at.desc(), finding.c.id)

finding_group: Final = sa.Table(
    "finding_group",
    METADATA,
    identity(),
    public_id("fg"),
    refers("tenant_id", "tenant", "Whose it is."),
    refers("project_id", "project", "Where it belongs."),
    text("fingerprint", "What its findings have in common, finding.fingerprint."),
    text("rule", "Name of the rule, kebab case."),
    text("level", "Of the finding seen last: error, warning or note."),
    text("state", "What people made of it: open, acknowledged, suppressed or fixed."),
    text("reason", "Why it has this state; NULL: nobody said.", null=True),
    text("state_by", "The actor that set the state; NULL: nobody did.", null=True),
    time("state_at", "When the state was set; NULL: never.", null=True),
    text("owner", "Whose task it is; NULL: nobody's.", null=True),
    refers("first_run_id", "run", "The run that showed it first."),
    refers("last_run_id", "run", "The run that showed it last."),
    time("first_seen_at", "When it was first stored."),
    time("last_seen_at", "When it was last stored."),
    i4("runs", "Runs that showed it."),
    i4("returned", "How often it was seen again after it was fixed."),
    text("path", "File of the finding seen last, relative POSIX."),
    i4("line", "First line of the finding seen last, 1-based."),
    text("message", "Of the finding seen last."),
    i4("version", "Rises with every change: the ETag."),
    time("muted_until", "A suppressed group is open again from then on; NULL: no end, or not suppressed.", null=True),
    text(
        "fingerprint_without_path",
        "The fingerprint of the finding seen last with an empty path: by it a group is found again when its file was "
        "renamed; NULL: of a program without a name, or last seen by a version before it.",
        null=True,
    ),
    is_one_of("level", LEVELS),
    is_one_of("state", ("open", "acknowledged", "suppressed", "fixed")),
    sa.UniqueConstraint("project_id", "fingerprint"),
    comment="The same finding over all runs of a project; its findings are those with its fingerprint.",
)
sa.Index(
    "finding_group_newest",
    finding_group.c.project_id,
    finding_group.c.state,
    finding_group.c.last_seen_at.desc(),
    finding_group.c.id,
)
sa.Index("finding_group_of_tenant", finding_group.c.tenant_id, finding_group.c.last_seen_at.desc(), finding_group.c.id)
sa.Index("finding_group_moved", finding_group.c.project_id, finding_group.c.fingerprint_without_path)

finding_group_alias: Final = sa.Table(
    "finding_group_alias",
    METADATA,
    refers("project_id", "project", "Where it belongs."),
    text("fingerprint", "finding.fingerprint of findings whose file was renamed."),
    text("known_as", "finding_group.fingerprint of the group that they belong to."),
    sa.PrimaryKeyConstraint("project_id", "fingerprint"),
    comment="Further fingerprints of a group: store/findings/moved_groups.py says when one is added.",
)
sa.Index("finding_group_alias_known_as", finding_group_alias.c.project_id, finding_group_alias.c.known_as)

finding_group_day: Final = sa.Table(
    "finding_group_day",
    METADATA,
    refers("group_id", "finding_group", "Which group."),
    refers("project_id", "project", "Of the group."),
    text("rule", "Of the group: name of the rule, kebab case."),
    text("day", "The day in UTC, 2026-11-20."),
    i4("runs", "Runs that showed the group on that day."),
    sa.PrimaryKeyConstraint("group_id", "day"),
    comment="How many runs showed a group on each day: what finding_group.runs grew by, counted by triggers.",
)
sa.Index(
    "finding_group_day_of_project",
    finding_group_day.c.project_id,
    finding_group_day.c.day,
    finding_group_day.c.rule,
    finding_group_day.c.runs,
)

_ADD: Final = "ON CONFLICT (group_id, day) DO UPDATE SET runs = finding_group_day.runs + excluded.runs"
_SQLITE_ADD: Final = """BEGIN INSERT INTO finding_group_day (group_id, project_id, rule, day, runs)
VALUES (new.id, new.project_id, new.rule, substr(new.last_seen_at, 1, 10), {runs})
{add}; END"""
_SQLITE: Final = (
    "CREATE TRIGGER finding_group_made AFTER INSERT ON finding_group\n" + _SQLITE_ADD.format(runs="new.runs", add=_ADD),
    "CREATE TRIGGER finding_group_shown AFTER UPDATE OF runs ON finding_group WHEN new.runs > old.runs\n"
    + _SQLITE_ADD.format(runs="new.runs - old.runs", add=_ADD),
)
_POSTGRESQL: Final = (
    f"""CREATE FUNCTION count_group_day() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  added integer := new.runs;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    added := new.runs - old.runs;
  END IF;
  IF added > 0 THEN
    INSERT INTO finding_group_day (group_id, project_id, rule, day, runs)
    VALUES (new.id, new.project_id, new.rule, to_char(new.last_seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), added)
    {_ADD};
  END IF;
  RETURN NULL;
END $body$""",  # noqa: S608 - built from constants only
    """CREATE TRIGGER finding_group_shown AFTER INSERT OR UPDATE OF runs ON finding_group
FOR EACH ROW EXECUTE FUNCTION count_group_day()""",
)
for _dialect, _statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRESQL)):
    for _statement in _statements:
        event.listen(METADATA, "after_create", sa.DDL(_statement.replace("%", "%%")).execute_if(dialect=_dialect))
