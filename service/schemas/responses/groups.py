"""What the API tells of groups of findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from backprobe.rules import Identity
from backprobe.rules.framework.rule import Level
from service.web.listing import Listing


@dataclass(frozen=True, kw_only=True)
class GroupLinks:
    """Addresses of what belongs to a group."""

    self: str
    findings: str


@dataclass(frozen=True, kw_only=True)
class GroupTold:
    """The same finding over all runs of a project; `made_of`: null where the finding seen last does not tell it."""

    id: str
    project: str
    fingerprint: str
    made_of: Identity | None
    rule: str
    level: Level
    state: Literal["open", "acknowledged", "suppressed", "fixed"]
    reason: str | None
    state_by: str | None
    state_at: str | None
    owner: str | None
    first_run: str
    last_run: str
    first_seen_at: str
    last_seen_at: str
    runs: int
    returned: int
    path: str
    line: int
    message: str
    version: int
    links: GroupLinks


@dataclass(frozen=True, kw_only=True)
class GroupList(Listing[GroupTold]):
    """A page of groups."""
