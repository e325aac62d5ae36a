"""Findings: what rules say about a run."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.tables.metadata import METADATA
from store.tables.types import i2, i4, identity, json, one_of, public_id, refers, text, time

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
    one_of("level", ("error", "warning", "note")),
    one_of("confidence", ("proven", "likely", "heuristic")),
    comment="A rule's verdict at a source line of one run.",
)
sa.Index("finding_of_rule", finding.c.tenant_id, finding.c.rule, finding.c.created_at.desc(), finding.c.run_id)
sa.Index("finding_of_run", finding.c.run_id, finding.c.attempt, finding.c.level, finding.c.line)
