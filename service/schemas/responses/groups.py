"""What the API tells of groups of findings."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from backprobe.rules import Identity
from backprobe.rules.framework.rule import Level
from service.web.listing import Listing
from store.findings.group_rows import State


@dataclass(frozen=True, kw_only=True)
class GroupLinks:
    """Addresses of what belongs to a group."""

    self: str
    findings: str


@dataclass(frozen=True, kw_only=True)
class GroupDay:
    """How many runs showed a group on a day in UTC."""

    day: datetime.date
    runs: int


@dataclass(frozen=True, kw_only=True)
class GroupTold:
    """The same finding over all runs of a project.

    `made_of`: what the fingerprint of the finding seen last was made of, null where the finding does not tell it; after
    a file was renamed that is another fingerprint than the group's. `muted_until`: a suppressed group is open from then
    on, and tells by it why it is. `has_returned`: it is open because a run showed it after it was fixed. Commits: label
    `commit` of the run, else of its last audit. `days`: null unless `include=days` asks for them.
    """

    id: str
    project: str
    project_name: str
    fingerprint: str
    made_of: Identity | None
    rule: str
    level: Level
    state: State
    reason: str | None
    state_by: str | None
    state_at: str | None
    muted_until: str | None
    has_returned: bool
    owner: str | None
    first_run: str
    last_run: str
    first_commit: str | None
    last_commit: str | None
    first_seen_at: str
    last_seen_at: str
    runs: int
    returned: int
    path: str
    line: int
    message: str
    version: int
    days: list[GroupDay] | None
    links: GroupLinks


@dataclass(frozen=True, kw_only=True)
class GroupList(Listing[GroupTold]):
    """A page of groups."""
