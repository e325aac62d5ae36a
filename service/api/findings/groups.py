"""Findings over all runs, and the groups that they are counted in: one for each fingerprint of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self
from urllib.parse import urlencode

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from backprobe.rules.framework.manual import every_rule
from backprobe.rules.framework.rule import Confidence, Level
from service.api.records.record import NoQuery
from service.auth.caller import caller
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Short
from service.schemas.responses.findings import FindingList
from service.schemas.responses.groups import GroupList, GroupTold
from service.web.body import Strict, body, query
from service.web.filters import Rules
from service.web.idempotency import effect
from service.web.parameters import Page, Split, Time
from service.web.reply import SAME, after_of, check_match, conditional, iso, json_reply, page_reply
from store import queries
from store.database.ids import is_id
from store.findings import findings, group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flask import Response

    from store.database.session import Transaction
    from store.findings.group_rows import GroupRow

blueprint = Operations("groups", __name__, tag="Findings")

State = Literal["open", "acknowledged", "suppressed", "fixed"]
_ANY_OF: Final = "Any of these, joined by commas."
_Levels = Annotated[list[Level], Split, Field(min_length=1, max_length=3)]
_Project = Annotated[str, Field(pattern=r"^prj_[A-Za-z0-9]{1,40}$")]


class FoundQuery(Page):
    """Which findings."""

    rule: Rules | None = Field(default=None, description=f"Names or codes. {_ANY_OF}")
    level: _Levels | None = Field(default=None, description=_ANY_OF)
    confidence: Annotated[list[Confidence], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    project: _Project | None = Field(default=None, description="Only those of this project.")
    path: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(default=None, description="A file.")
    fingerprint: Annotated[str, Field(pattern=r"^backprobe/v1:[0-9a-f]{16}$")] | None = Field(
        default=None, description="The same finding, in whichever run."
    )
    created_gt: Time | None = Field(default=None, alias="created.gt", description="Stored later than this.")


class GroupsQuery(Page):
    """Which groups."""

    state: Annotated[list[State], Split, Field(min_length=1, max_length=4)] | None = Field(
        default=None, description=_ANY_OF
    )
    rule: Rules | None = Field(default=None, description=f"Names or codes. {_ANY_OF}")
    level: _Levels | None = Field(default=None, description=_ANY_OF)
    project: _Project | None = Field(default=None, description="Only those of this project.")
    owner: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Whose task it is.")
    last_seen_gt: Time | None = Field(default=None, alias="last_seen.gt", description="Seen later than this.")


class GroupChanged(Strict):
    """What people make of a finding; what is not given stays."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"reason": ["state"]}})

    state: State = Field(default_factory=lambda: "open", description="`suppressed` wants a reason.")
    reason: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Why it has this state.")
    owner: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="`null`: nobody's.")

    @model_validator(mode="after")
    def _a_reason_has_a_state(self) -> Self:
        if "reason" in self.model_fields_set and "state" not in self.model_fields_set:
            raise PydanticCustomError("reason_without_state", "`reason` says why `state` is set: give both")
        return self


def _project_of(asked: str | None) -> str | None:
    """The project to look at: the one asked for, or the only one that the caller sees."""
    return caller().project if asked is None else asked


def _hidden(asked: str | None) -> bool:
    """Another project than the only one that the caller sees was asked for."""
    return caller().project is not None and asked not in {None, caller().project}


@blueprint.get("/v1/findings")
@query(FoundQuery)
@answers({200: Answer(text="A page of findings, newest first.", model=FindingList, headers=("Link",))})
def find_findings(query: FoundQuery) -> Response:
    """Findings over all runs that today's rules make and no comment suppresses, newest first."""
    after = after_of("findings", query)
    if _hidden(query.project):
        return page_reply("findings", query, [], None)
    with context().database.read() as transaction:
        page = findings.over_runs(
            transaction,
            tenant_id=caller().tenant_id,
            of_project=_project_of(query.project),
            level=query.level or (),
            rule=query.rule or (),
            confidence=query.confidence or (),
            path=query.path,
            fingerprint=query.fingerprint,
            created_after=None if query.created_gt is None else iso(query.created_gt),
            after=None if after is None else (after[0], after[1]),
            limit=query.limit,
        )
    return page_reply("findings", query, [found.json() for found in page.items], page.next)


@blueprint.get("/v1/finding-groups")
@query(GroupsQuery)
@answers({200: Answer(text="A page of groups, the one seen last first.", model=GroupList, headers=("Link",))})
def list_groups(query: GroupsQuery) -> Response:
    """The same finding over all runs of a project is one group; this lists them, the one seen last first."""
    after = after_of("finding-groups", query)
    if _hidden(query.project):
        return page_reply("finding-groups", query, [], None)
    with context().database.read() as transaction:
        page = group_rows.page(
            transaction,
            tenant_id=caller().tenant_id,
            project=_project_of(query.project),
            state=query.state or (),
            level=query.level or (),
            rule=_names(query.rule or ()),
            owner=query.owner,
            last_seen_after=None if query.last_seen_gt is None else iso(query.last_seen_gt),
            after=None if after is None else (after[0], after[1]),
            limit=query.limit,
        )
    return page_reply("finding-groups", query, [_told(group) for group in page.items], page.next)


def _names(asked: Sequence[str]) -> list[str]:
    """Rules by name, whether they were asked for by name or code; what no rule has finds nothing."""
    names = {rule.code: rule.name for rule in every_rule()}
    return [names.get(one, one) for one in asked]


@blueprint.get("/v1/finding-groups/<group>")
@query(NoQuery)
@answers({200: Answer(text="The group.", model=GroupTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",))
def get_group(group: str) -> Response:
    """One group by its id."""
    with context().database.read() as transaction:
        found = _group_of(transaction, group)
    return conditional(json_reply(_told(found), headers=_headers(found)))


@blueprint.patch("/v1/finding-groups/<group>")
@body(GroupChanged)
@answers(
    {200: Answer(text="The group, changed.", model=GroupTold, headers=("ETag",))},
    problems=("if-match-needed", "stale", "reason-needed"),
    headers=("If-Match",),
    scope="findings:write",
)
def change_group(group: str, body: GroupChanged) -> Response:
    """Say what is made of a finding, and whose task it is. Needs `If-Match`; one seen again after `fixed` is open."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    with effect() as write:
        found = _group_of(write.transaction, group)
        check_match(f"group {found.id}", _headers(found)["ETag"])
        if given.get("state") == "suppressed" and given.get("reason") is None:
            detail = "A finding is suppressed for a reason; say which."
            place = Place(pointer="#/reason", code="reason-needed", detail=detail)
            raise Problem("reason-needed", detail, places=(place,))
        if not group_rows.change(write.transaction, found, given, actor=caller().actor):
            raise Problem("stale", f"Group {found.id} has just changed.")
        write.done("finding-group.change", found.id, detail={"fields": sorted(given)})
        found = _group_of(write.transaction, group)
    return json_reply(_told(found), headers=_headers(found))


def _group_of(transaction: Transaction, public_id: str) -> GroupRow:
    """The group of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    asked = caller()
    found = group_rows.get(transaction, public_id, tenant_id=asked.tenant_id) if is_id("fg", public_id) else None
    if found is None or asked.project not in {None, found.project}:
        raise Problem("not-found", f"There is no group {public_id[:40]}.")
    return found


def _headers(found: GroupRow) -> dict[str, str]:
    return {"ETag": f'"{found.version}"', "Cache-Control": "no-cache"}


def _told(found: GroupRow) -> dict[str, Any]:
    told = queries.as_json(found)
    del told["number"]
    links = {
        "self": f"/v1/finding-groups/{found.id}",
        "findings": f"/v1/findings?{urlencode({'fingerprint': found.fingerprint, 'project': found.project})}",
    }
    return {**told, "links": links}
