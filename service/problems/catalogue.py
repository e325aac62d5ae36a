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
        title="The Transfer-Encoding is not supported",
        hint="Send the body with Content-Length, or with `Transfer-Encoding: chunked` alone.",
    ),
    Kind(
        code="unauthenticated",
        status=401,
        title="An API key is required",
        hint="Send an API key as `Authorization: Bearer KEY`. In a browser, sign in at /sign-in.",
    ),
    Kind(
        code="foreign-host",
        status=403,
        title="The Host header names another machine",
        hint="Without an API key this server accepts loopback host names only. Open it as http://127.0.0.1, or set "
        "BACKPROBE_API_KEY on the server.",
    ),
    Kind(
        code="foreign-origin",
        status=403,
        title="Another site's page made this request",
        hint="Send writes from this server's pages or from a program that sends no Origin header.",
    ),
    Kind(
        code="scope-missing",
        status=403,
        title="The key does not have the required scope",
        hint="Use a key with the scope in the detail. A user with the scope keys:write can create one.",
    ),
    Kind(
        code="login-failed",
        status=400,
        title="The login was not completed",
        hint="Start again at /login. If it fails again, ask the operator to look up the request id in the log.",
    ),
    Kind(
        code="login-refused",
        status=403,
        title="This account is not allowed",
        hint="Log in with another account, or ask the operator to add this one to BACKPROBE_OIDC_ALLOWED.",
    ),
    Kind(
        code="csrf-token-needed",
        status=403,
        title="The session token is missing",
        hint="Send the token from the head of the page as X-CSRF-Token. Programs use an API key instead.",
    ),
    Kind(
        code="not-found",
        status=404,
        title="Not found",
        hint="Check the address. /openapi.json lists all addresses, GET /v1/runs lists the runs.",
    ),
    Kind(
        code="method-not-allowed",
        status=405,
        title="This address does not support the method",
        hint="Use one of the methods in the Allow header.",
    ),
    Kind(
        code="not-acceptable",
        status=406,
        title="The format is not available",
        hint="Request one of the formats that /openapi.json lists for this address.",
    ),
    Kind(
        code="isolation-unavailable",
        status=409,
        title="No live worker offers the requested isolation level",
        hint="Nothing was stored. Request a level that a worker offers, or start a worker that offers this level.",
    ),
    Kind(
        code="idempotency-in-flight",
        status=409,
        title="The first request with this Idempotency-Key is still in progress",
        hint="Wait as many seconds as Retry-After says, then send the request again.",
    ),
    Kind(
        code="record-expired",
        status=410,
        title="The record of this run has been deleted",
        hint="The run and its findings are still stored. Submit the snippet again to get a new record.",
    ),
    Kind(
        code="run-not-ended",
        status=409,
        title="The run has not ended",
        hint="Wait for the end: GET the run with `Prefer: wait=30`, then send the request again.",
    ),
    Kind(
        code="audit-not-ended",
        status=409,
        title="The audit has not ended",
        hint="Wait until the audit has ended, or POST /v1/audits/{audit}/cancel, then send the request again.",
    ),
    Kind(
        code="not-judged-yet",
        status=409,
        title="The rules have not judged this run yet",
        hint="Wait for the end: GET the run with `Prefer: wait=30`, then send the request again.",
    ),
    Kind(
        code="source-not-kept",
        status=409,
        title="The source of this run is not stored",
        hint="Submit the program again with its source text.",
    ),
    Kind(
        code="webhook-disabled",
        status=409,
        title="The webhook is switched off",
        hint="Repair the receiver, enable the webhook with PATCH and `enabled`, and send the request again.",
    ),
    Kind(
        code="stale",
        status=412,
        title="The resource has changed since you read it",
        hint="GET the resource again, check what changed, and send your change with the new ETag.",
    ),
    Kind(
        code="too-large",
        status=413,
        title="The request is too large",
        hint="Nothing was stored. Send a smaller request: the service needs the code, not the data.",
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
        title="The requested byte range is outside the file",
        hint="Request a range within the size in Content-Range, or omit Range to get the whole file.",
    ),
    Kind(
        code="bad-record",
        status=422,
        title="The body is not a valid record",
        hint="Send the bytes of a file that `backprobe run --save` or `backprobe export` wrote.",
    ),
    Kind(
        code="invalid-request",
        status=422,
        title="The request is not valid",
        hint="Nothing was stored. Correct the fields listed in `errors` and send the request again.",
    ),
    Kind(
        code="repeated-parameter",
        status=422,
        title="A parameter occurs twice",
        hint="Give each parameter once; several values are joined by commas where a parameter takes several.",
    ),
    Kind(
        code="syntax-error",
        status=422,
        title="The snippet does not parse",
        hint="Nothing was run. Correct the line and send the snippet again.",
    ),
    Kind(
        code="no-entry-point",
        status=422,
        title="The entry file is missing",
        hint="Set `entry` to the name of one of `files`.",
    ),
    Kind(
        code="unknown-device",
        status=422,
        title="The device is not available",
        hint="Use `cpu`, or `cuda` if a worker of the queue gpu is running.",
    ),
    Kind(
        code="idempotency-mismatch",
        status=422,
        title="This Idempotency-Key was used with another request",
        hint="Create a new key for each new request, and repeat a key only with an identical body.",
    ),
    Kind(
        code="unknown-rule",
        status=422,
        title="The rule does not exist",
        hint="GET /v1/rules lists them; a policy also takes the beginning of a code, `level:error` and `*`.",
    ),
    Kind(
        code="reason-needed",
        status=422,
        title="A reason is required",
        hint="Send `reason` together with `state`.",
    ),
    Kind(
        code="address-refused",
        status=422,
        title="Webhooks cannot use this address",
        hint="Use a public https address on port 443, or ask the operator to allow this address.",
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
        title="The answer would be too large",
        hint="Request less data; the detail states how much there is.",
    ),
    Kind(
        code="if-match-needed",
        status=428,
        title="The If-Match header is missing",
        hint="GET the resource and send its ETag as `If-Match`, so that no other change is overwritten.",
    ),
    Kind(
        code="rate-limited",
        status=429,
        title="Too many requests in a minute",
        hint="Wait as many seconds as Retry-After says. RateLimit says how many requests are left.",
    ),
    Kind(
        code="quota-exceeded",
        status=429,
        title="The quota is used up",
        hint="Nothing was stored. Wait until some of your runs have ended; `detail` has their number and the limit.",
    ),
    Kind(
        code="database-full",
        status=507,
        title="The database is full, and you have more than your share of it",
        hint="Nothing was stored. Delete records and audits that you no longer need and send the request again, or "
        "ask the operator for more space.",
    ),
    Kind(
        code="internal-error",
        status=500,
        title="Internal server error",
        hint="Send the request id to the operator, who can find the cause in the log of the server.",
    ),
    Kind(
        code="provider-away",
        status=502,
        title="The identity provider did not answer",
        hint="Try again. If it fails again, ask the operator to check BACKPROBE_OIDC_ISSUER and the network.",
    ),
    Kind(
        code="unavailable",
        status=503,
        title="The database is unavailable",
        hint="Wait as many seconds as Retry-After says, then try again.",
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
