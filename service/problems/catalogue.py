"""Every code that an error of the API can carry: its status, its title, and what its reader should do next."""

from typing import Final

from service.problems.capacity import CAPACITY_KINDS
from service.problems.kind import Kind
from service.problems.recorders import RECORDER_KINDS

_KINDS: Final = (
    Kind(
        code="malformed-request",
        status=400,
        title="The request could not be read",
        hint="Send one JSON object in UTF-8, with its length, as /openapi.json describes it.",
    ),
    Kind(
        code="transfer-encoding-unknown",
        status=501,
        title="The Transfer-Encoding is not known",
        hint="Send the body with Content-Length, or with `Transfer-Encoding: chunked` alone.",
    ),
    Kind(
        code="unauthenticated",
        status=401,
        title="A key is needed",
        hint="Send the server's key: `Authorization: Bearer KEY`, or as the password in a browser.",
    ),
    Kind(
        code="foreign-host",
        status=403,
        title="The Host header names another machine",
        hint="Without a key this server answers to loopback names only. Open it as http://127.0.0.1, or set "
        "BACKPROBE_API_KEY on the server.",
    ),
    Kind(
        code="foreign-origin",
        status=403,
        title="Another site's page made this request",
        hint="Writes are taken from this server's own pages and from programs, which send no Origin header.",
    ),
    Kind(
        code="scope-missing",
        status=403,
        title="The key may not do this",
        hint="Use a key with the scope that the detail names; whoever holds keys:write can make one.",
    ),
    Kind(
        code="login-failed",
        status=400,
        title="The login was not completed",
        hint="Begin again at /login. If it comes again, the operator finds the cause in the log by the request id.",
    ),
    Kind(
        code="login-refused",
        status=403,
        title="This account is not let in",
        hint="Log in with another one, or ask the operator: BACKPROBE_OIDC_ALLOWED names who is let in.",
    ),
    Kind(
        code="csrf-token-needed",
        status=403,
        title="A write with a cookie needs the session's token",
        hint="Send it as X-CSRF-Token; the page has it in its head. Programs use a key instead.",
    ),
    Kind(
        code="not-found",
        status=404,
        title="There is nothing here",
        hint="Check the address; /openapi.json lists all of them, GET /v1/runs lists the runs.",
    ),
    Kind(
        code="method-not-allowed",
        status=405,
        title="This address does not take that method",
        hint="The Allow header names the methods that it takes.",
    ),
    Kind(
        code="not-acceptable",
        status=406,
        title="No such format",
        hint="Ask for one of the formats that /openapi.json lists for this address.",
    ),
    Kind(
        code="isolation-unavailable",
        status=409,
        title="No live worker isolates as strictly as asked",
        hint="Nothing was stored. Ask for a level that is offered, or start a worker that offers this one.",
    ),
    Kind(
        code="idempotency-in-flight",
        status=409,
        title="The first request with this Idempotency-Key is not answered yet",
        hint="Send it again after the seconds that Retry-After names.",
    ),
    Kind(
        code="record-expired",
        status=410,
        title="The record of this run has been deleted",
        hint="The run itself and its findings are kept; submit the snippet again for a new record.",
    ),
    Kind(
        code="run-not-ended",
        status=409,
        title="The run has not ended",
        hint="Wait for its end: GET the run with `Prefer: wait=30`, then ask again.",
    ),
    Kind(
        code="audit-not-ended",
        status=409,
        title="The audit has not ended",
        hint="Wait for its end, or cancel it with POST /v1/audits/{audit}/cancel, then ask again.",
    ),
    Kind(
        code="not-judged-yet",
        status=409,
        title="The rules have not judged this run yet",
        hint="Wait for its end: GET the run with `Prefer: wait=30`, then ask again.",
    ),
    Kind(
        code="source-not-kept",
        status=409,
        title="The source of this run is not kept",
        hint="Submit the program again, with its text.",
    ),
    Kind(
        code="webhook-disabled",
        status=409,
        title="The webhook is switched off",
        hint="Mend its receiver, switch it on with PATCH and `enabled`, and ask again.",
    ),
    Kind(
        code="stale",
        status=412,
        title="It has changed since you read it",
        hint="GET it again, look at what is new, and send the change with the new ETag.",
    ),
    Kind(
        code="too-large",
        status=413,
        title="That is more than this server takes",
        hint="Nothing was stored. Send a smaller snippet: the service wants the code, not the data.",
    ),
    Kind(
        code="unsupported-media-type",
        status=415,
        title="The body is not JSON",
        hint="Send `Content-Type: application/json`, in UTF-8.",
    ),
    Kind(
        code="no-such-range",
        status=416,
        title="The file does not have those bytes",
        hint="Content-Range says how many bytes it has; ask for some of those, or leave Range away for all.",
    ),
    Kind(
        code="bad-record",
        status=422,
        title="That is not a record that can be stored",
        hint="Send the bytes of a file that `backprobe run --save` or `backprobe export` wrote.",
    ),
    Kind(
        code="invalid-request",
        status=422,
        title="The request is not as described",
        hint="Mend what `errors` points at and send it again. Nothing was stored.",
    ),
    Kind(
        code="repeated-parameter",
        status=422,
        title="A parameter is given twice",
        hint="Give each parameter once; several values are joined by commas where a parameter takes several.",
    ),
    Kind(
        code="syntax-error",
        status=422,
        title="The snippet does not parse",
        hint="Nothing was run. Mend the line and send it again.",
    ),
    Kind(
        code="no-entry-point",
        status=422,
        title="There is no file to start with",
        hint="Name one of `files` as `entry`.",
    ),
    Kind(
        code="unknown-device",
        status=422,
        title="No such device",
        hint="Take `cpu`, or `cuda` where a worker of the queue gpu is alive.",
    ),
    Kind(
        code="idempotency-mismatch",
        status=422,
        title="This Idempotency-Key came with another request",
        hint="Make a new key for each new request, and repeat it only with the very same body.",
    ),
    Kind(
        code="unknown-rule",
        status=422,
        title="There is no such rule",
        hint="GET /v1/rules lists them; a policy also takes the beginning of a code, `level:error` and `*`.",
    ),
    Kind(
        code="reason-needed",
        status=422,
        title="A reason is needed",
        hint="Send `reason` with `state`: whoever reads this later wants to know why.",
    ),
    Kind(
        code="address-refused",
        status=422,
        title="Nothing is sent to this address",
        hint="Name an https address that is reachable from everywhere, on port 443; the operator may allow more.",
    ),
    Kind(
        code="bad-cursor",
        status=422,
        title="This cursor belongs to another list",
        hint="Start the list again without a cursor, and follow next_cursor with the same parameters.",
    ),
    Kind(
        code="too-much-asked",
        status=422,
        title="That answer would be too large",
        hint="Ask for less; the detail says how much there is.",
    ),
    Kind(
        code="if-match-needed",
        status=428,
        title="A change names the state that it was made for",
        hint="GET it, and send its ETag as `If-Match`; then nobody's change is overwritten unseen.",
    ),
    Kind(
        code="rate-limited",
        status=429,
        title="Too many requests in a minute",
        hint="Send it again after the seconds that Retry-After names; RateLimit in each answer says how many are left.",
    ),
    Kind(
        code="quota-exceeded",
        status=429,
        title="That is more than is allowed to you at once",
        hint="Nothing was stored. Wait for runs of yours to end; the detail says how many there are and may be.",
    ),
    Kind(
        code="database-full",
        status=507,
        title="The database is full, and you have more than your share of it",
        hint="Nothing was stored. Delete records and audits that you need no more, then send it again; or ask the "
        "operator for room.",
    ),
    Kind(
        code="internal-error",
        status=500,
        title="Something broke on our side",
        hint="Tell the operator the request id: it finds the cause in the server's log.",
    ),
    Kind(
        code="provider-away",
        status=502,
        title="The identity provider did not answer",
        hint="Try again; if it stays so, BACKPROBE_OIDC_ISSUER is wrong, or the server cannot reach it.",
    ),
    Kind(
        code="unavailable",
        status=503,
        title="The database does not answer",
        hint="Try again after the seconds that Retry-After names.",
    ),
)

KINDS: Final[dict[str, Kind]] = {kind.code: kind for kind in (*_KINDS, *RECORDER_KINDS, *CAPACITY_KINDS)}
"""Every kind by its code."""

BY_STATUS: Final[dict[int, str]] = {
    400: "malformed-request",
    401: "unauthenticated",
    403: "foreign-origin",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    408: "malformed-request",
    411: "malformed-request",
    412: "stale",
    413: "too-large",
    414: "too-large",
    415: "unsupported-media-type",
    416: "no-such-range",
    428: "if-match-needed",
    429: "rate-limited",
    431: "too-large",
    500: "internal-error",
    501: "transfer-encoding-unknown",
    503: "unavailable",
}
"""The code for an error that the framework raised by status alone; any other 4xx is `malformed-request`."""
