"""Policies: which findings fail an audit. A change is a new revision; audits keep the one they were begun with."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from backprobe.rules.framework.rule import Confidence
from backprobe.rules.policy import rules_of, unknown_pattern
from service.auth.caller import caller, demand_tenant
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Short
from service.schemas.responses.audits import PolicyList, PolicyTold
from service.web.body import Strict, body, pointer, query
from service.web.idempotency import storing
from service.web.parameters import Page, Whole
from service.web.reply import SAME, check_match, conditional, json_reply, page_reply, read_cursor
from store.audits import policies
from store.database.ids import is_id

if TYPE_CHECKING:
    from flask import Response

    from store.audits.policies import Policy
    from store.database.session import Transaction

blueprint = Operations("policies", __name__, tag="Audits")

_Pattern = Annotated[str, Field(pattern=r"^(\*|level:[a-z]{1,10}|[A-Za-z0-9-]{1,64})$")]
_Patterns = Annotated[list[_Pattern], Field(max_length=200)]
_Name = Annotated[Short, Field(min_length=1, max_length=100)]
_WHAT: Final = "Names or codes of rules, beginnings of codes (`BP3`), `level:error`, or `*`."


class PolicyRules(Strict):
    """Which findings fail an audit, and which only warn."""

    fail: _Patterns = Field(default_factory=lambda: ["level:error"], description=f"What fails. {_WHAT}")
    warn: _Patterns = Field(default_factory=lambda: ["*"], description=f"What warns without failing. {_WHAT}")
    min_confidence: Confidence = Field(default="heuristic", description="Findings less sure are not looked at.")
    new_only: bool = Field(default=False, description="Findings that the baseline has neither fail nor warn.")
    not_run: Literal["fail", "warn"] = Field(
        default="fail", description="What an item does that could not be judged; it never counts as passed."
    )
    min_backward_calls: int = Field(
        default=0, ge=0, le=2**31 - 1, description="An item with fewer backward calls counts as not run."
    )


class PolicyAsked(PolicyRules):
    """A policy to be made."""

    name: _Name = Field(description="The tenant's only one of this name.")


class PolicyRevised(PolicyRules):
    """The next revision of a policy, whole; its name stays if it is not given."""

    name: _Name | None = Field(default=None, description="The tenant's only one of this name.")


class RevisionQuery(Strict):
    """Which revision."""

    revision: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="The newest if it is not given."
    )


def policy_of(transaction: Transaction, public_id: str, revision: int | None = None) -> Policy:
    """Load the policy of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    found = None
    if is_id("pol", public_id):
        found = policies.get(transaction, public_id, tenant_id=caller().tenant_id, revision=revision)
    if found is None:
        which = f"revision {revision} of policy" if revision is not None else "policy"
        raise Problem("not-found", f"There is no {which} {public_id[:40]}.")
    return found


@blueprint.post("/v1/policies")
@body(PolicyAsked)
@answers(
    {201: Answer(text="The policy, revision 1.", model=PolicyTold, headers=("Location", "ETag"))},
    problems=("not-found", "unknown-rule", *STORING, *ONCE),
    headers=("Idempotency-Key",),
    scope="audits:write",
)
def create_policy(body: PolicyAsked) -> Response:
    """Make a policy, for all projects of the tenant; a key of one project may not."""
    demand_tenant()
    rules = _check_policy(body)
    with storing() as write:
        if write.known is not None:
            found = policy_of(write.transaction, (write.known.body or b"").decode())
        else:
            asked = caller()
            try:
                found = policies.create(
                    write.transaction, body.name, rules, actor=asked.actor, tenant_id=asked.tenant_id
                )
            except policies.PolicyTaken:
                raise _name_taken_problem(body.name) from None
            write.done("policy.create", found.id)
    location = {"Location": f"/v1/policies/{found.id}", **write.headers}
    return json_reply(_policy_to_json(found), 201, _headers(found) | location)


@blueprint.put("/v1/policies/<policy>")
@body(PolicyRevised)
@answers(
    {200: Answer(text="The policy's new revision.", model=PolicyTold, headers=("ETag",))},
    problems=("unknown-rule", "if-match-needed", "stale", *STORING),
    headers=("If-Match",),
    scope="audits:write",
)
def revise_policy(policy: str, body: PolicyRevised) -> Response:
    """Write the next revision of a policy. Needs `If-Match`; audits that are there keep their revision."""
    demand_tenant()
    asked = caller()
    with storing() as write:
        found = policy_of(write.transaction, policy)
        check_match(f"policy {found.id}", _headers(found)["ETag"])
        rules, name = _check_policy(body), body.name or found.name
        try:
            found = policies.revise(write.transaction, found, name, rules, actor=asked.actor, tenant_id=asked.tenant_id)
        except policies.PolicyTaken:
            raise _name_taken_problem(name) from None
        write.done("policy.revise", found.id, detail={"revision": found.revision})
    return json_reply(_policy_to_json(found), headers=_headers(found))


@blueprint.get("/v1/policies")
@query(Page)
@answers({200: Answer(text="A page of policies, oldest first.", model=PolicyList, headers=("Link",))})
def list_policies(query: Page) -> Response:
    """The policies, each with its newest revision."""
    after = read_cursor("policies", query)
    with context().database.read() as transaction:
        page = policies.page(
            transaction, tenant_id=caller().tenant_id, after=after[0] if after else None, limit=query.limit
        )
    following = None if page.next is None else [page.next]
    return page_reply("policies", query, [_policy_to_json(item) for item in page.items], following)


@blueprint.get("/v1/policies/<policy>")
@query(RevisionQuery)
@answers({200: Answer(text="The policy.", model=PolicyTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",))
def get_policy(policy: str, query: RevisionQuery) -> Response:
    """One policy, or an older revision of it."""
    with context().database.read() as transaction:
        found = policy_of(transaction, policy, query.revision)
    return conditional(json_reply(_policy_to_json(found), headers=_headers(found)))


def _check_policy(asked: PolicyRules) -> dict[str, Any]:
    """Check a policy; return what is stored of it.

    Raises:
        Problem: `unknown-rule`, with the nearest name.
    """
    places: list[Place] = []
    for field in ("fail", "warn"):
        for n, pattern in enumerate(getattr(asked, field)):
            if said := unknown_pattern(pattern):
                places.append(Place(pointer=pointer((field, n)), code="unknown-rule", detail=said))
    if places:
        raise Problem("unknown-rule", places[0].detail, places=tuple(places))
    return asked.model_dump(exclude={"name"})


def _name_taken_problem(name: str) -> Problem:
    detail = f"The name {name!r} is another policy's, or somebody else has just changed this one."
    return Problem("invalid-request", detail, places=(Place(pointer="#/name", code="name-taken", detail=detail),))


def _headers(found: Policy) -> dict[str, str]:
    return {"ETag": f'"{found.revision}"', "Cache-Control": "no-cache"}


def _policy_to_json(found: Policy) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "revision": found.revision,
        **asdict(rules_of(found.body)),
        "created_by": found.created_by,
        "created_at": found.created_at,
        "links": {"self": f"/v1/policies/{found.id}"},
    }
