"""What the API tells of groups of findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.api.listing import Listing


@dataclass(frozen=True, kw_only=True)
class GroupLinks:
    """Addresses of what belongs to a group."""

    self: str
    findings: str


@dataclass(frozen=True, kw_only=True)
class MadeOf:
    """What a fingerprint is made of.

    Attributes:
        rule: Its name. path: relative, POSIX.
        function: The qualified name around the line; `<module>` at the top of a file.
        text: The line, blanks collapsed. binding: the name that it is about; "": none.
        n: Its place among the findings of a run that are equal in all of these, from 0.
    """

    rule: str
    path: str
    function: str
    text: str
    binding: str
    n: int


@dataclass(frozen=True, kw_only=True)
class GroupTold:
    """The same finding over all runs of a project; `made_of`: null where the finding seen last does not tell it."""

    id: str
    project: str
    fingerprint: str
    made_of: MadeOf | None
    rule: str
    level: Literal["error", "warning", "note"]
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
