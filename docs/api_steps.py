"""The steps of a newcomer's way through the API: what is said, what is sent in curl and in Python, what is answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from service.openapi.examples import SNIPPET


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        python: Leaves what the service answered in `answer`.
        answer: As it is shown; a string: its text begins so. None: none is shown.
        value: What Python leaves, where it is another.
    """

    title: str
    text: str
    command: str
    python: str
    answer: Any = None
    value: Any = None


_CLEAN: Final = SNIPPET.replace("requires_grad=True) * 2", "requires_grad=True)")
_SENT: Final = json.dumps({"source": SNIPPET})
_SECOND: Final = json.dumps({"custom_id": "jobs/second.py", "source": _CLEAN}).replace("\\n", "\\\\n")
"""The second line as a shell's here-document has it."""

_SCOPES: Final = '["read", "runs:write", "findings:write", "audits:write", "webhooks:write", "keys:write", "admin"]'
STEPS: Final = (
    Step(
        title="A key",
        text="A service on your own machine answers you without a key; make one all the same: every other service wants "
        "it, and you see what it looks like. Its secret is shown this once. `field` picks one field of an answer; jq does "
        "it better where you have it.",
        command=f"""\
API=${{API:-http://127.0.0.1:8000}}
field() {{ python3 -c "import json, sys; print(json.load(sys.stdin)['$1'])"; }}

curl -sS --fail-with-body "$API/v1/keys" -H 'Content-Type: application/json' \\
  -d '{{"name": "guide", "scopes": {_SCOPES}}}' | tee key.json
KEY=$(field secret < key.json)""",
        python=f"""\
import os
from backprobe.client import ApiError, Client

API = os.environ.get("API", "http://127.0.0.1:8000")
with Client(API) as anybody:
    answer = anybody.call("POST", "/v1/keys", body={{"name": "guide", "scopes": {_SCOPES}}})
service = Client(API, answer["secret"])""",
        answer={"id": "key_...", "name": "guide", "prefix": "...", "secret": "bp_...", "...": "..."},
    ),
    Step(
        title="Submit a program, and wait for its end",
        text="With `Prefer: wait=30` the answer is the ended run. Without it, or if the program takes longer, it is 202 "
        "and the run as it stands: ask again with `GET /v1/runs/{run}` and the same header. `status` says how the program "
        "ended, and nothing about what was found.",
        command=f"""\
curl -sS --fail-with-body "$API/v1/runs" -H "Authorization: Bearer $KEY" \\
  -H 'Content-Type: application/json' -H 'Prefer: wait=30' \\
  -d '{_SENT}' | tee run.json
RUN=$(field id < run.json)""",
        python=f"""\
run = service.submit(wait=30, source='''\\
{SNIPPET}''')
answer = run.told""",
        answer={
            "id": "run_...",
            "status": "succeeded",
            "ended": True,
            "entry": "snippet.py",
            "findings": {"error": 0, "warning": 1, "note": 0, "...": "..."},
            "record": {"tensors": "...", "snapshots": "...", "...": "..."},
            "links": {"tensors": "/v1/runs/run_...", "findings": "/v1/runs/run_...", "...": "..."},
            "...": "...",
        },
    ),
    Step(
        title="What is wrong with it",
        text="A finding names the line, says what it rests on, and often brings its fix in `fixes`. "
        "`include=findings` on the submit spares this second request.",
        command='curl -sS --fail-with-body "$API/v1/runs/$RUN/findings" -H "Authorization: Bearer $KEY"',
        python='answer = service.call("GET", f"/v1/runs/{run.id}/findings")',
        answer={
            "items": [
                {
                    "id": "f_...",
                    "rule": {"code": "BP101", "name": "non-leaf-grad-read", "...": "..."},
                    "level": "warning",
                    "confidence": "proven",
                    "message": "...",
                    "location": {"path": "snippet.py", "region": {"start_line": 3, "...": "..."}, "...": "..."},
                    "...": "...",
                }
            ],
            "next_cursor": None,
        },
    ),
    Step(
        title="What its tensors were",
        text="Each tensor with its last state, and `why_none`: the reason why its `.grad` is None. Every list has its "
        "own filters, comes in pages, and leads to the next one by `next_cursor`; the client follows it.",
        command="""\
curl -sS --fail-with-body "$API/v1/runs/$RUN/tensors?name=w" -H "Authorization: Bearer $KEY\"""",
        python='answer = {"items": list(service.tensors(run.id, name="w")), "next_cursor": None}',
        answer={
            "items": [
                {
                    "tensor": "...",
                    "name": "w",
                    "shape": [3],
                    "line": 3,
                    "state": {"is_leaf": False, "requires_grad": True, "grad": "not-read", "...": "..."},
                    "why_none": {"verdict": "not-leaf", "line": 3, "...": "..."},
                    "...": "...",
                }
            ],
            "next_cursor": None,
        },
    ),
    Step(
        title="Follow a run as it happens",
        text="Server-sent events: `id` counts them, and who comes back with `Last-Event-ID` misses none; the client does "
        "so by itself. The stream of an ended run is all of its events at once.",
        command="""\
curl -sSN --fail-with-body "$API/v1/runs/$RUN/events" -H "Authorization: Bearer $KEY" -H 'Accept: text/event-stream'""",
        python="""\
for event in service.events(run.id):
    print(event["seq"], event["kind"])
answer = event""",
        answer="retry: 1000\n\nid: 1\nevent: queued\ndata: ...",
        value={"run": "run_...", "kind": "status", "detail": {"status": "succeeded"}, "...": "..."},
    ),
    Step(
        title="Take it elsewhere",
        text="Lists come as JSON lines, CSV and Parquet, findings also as SARIF and JUnit: by `Accept`, or by `format`.",
        command='curl -sS --fail-with-body "$API/v1/runs/$RUN/findings?format=sarif" -H "Authorization: Bearer $KEY"',
        python='answer = service.call("GET", f"/v1/runs/{run.id}/findings", format="sarif")',
        answer={
            "version": "2.1.0",
            "runs": [{"tool": {"driver": {"name": "...", "...": "..."}}, "...": "..."}],
            "...": "...",
        },
    ),
    Step(
        title="Judge many together",
        text="An audit is a list of programs with one verdict: line 1 says what holds for all, each further line is a "
        "program, or a run that is there. A policy says which rules fail it; without one, findings of level error do. A "
        "line that cannot be run fails alone. Sent again with the same `Idempotency-Key`, a broken upload goes on where "
        "it broke. The rules over the programs stand at `.../matrix`, the findings at `.../findings`, for code scanning "
        "with `format=sarif`.",
        command=f"""\
curl -sS --fail-with-body "$API/v1/policies" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{{"name": "guide", "fail": ["non-leaf-grad-read", "level:error"]}}' > policy.json
POLICY=$(field id < policy.json)

cat > audit.ndjson <<END
{{"name": "nightly", "policy": "$POLICY", "labels": {{"commit": "9f2c1ab"}}}}
{{"custom_id": "jobs/first.py", "run": "$RUN"}}
{_SECOND}
END
curl -sS --fail-with-body "$API/v1/audits" -H "Authorization: Bearer $KEY" \\
  -H 'Content-Type: application/x-ndjson' -H 'Prefer: wait=30' --data-binary @audit.ndjson | tee audit.json
AUDIT=$(field id < audit.json)
curl -sS --fail-with-body "$API/v1/audits/$AUDIT/matrix?format=csv" -H "Authorization: Bearer $KEY" > matrix.csv""",
        python=f"""\
policy = service.call(
    "POST", "/v1/policies", body={{"name": "guide in Python", "fail": ["non-leaf-grad-read", "level:error"]}}
)
answer = service.audit(
    [
        {{"custom_id": "jobs/first.py", "run": run.id}},
        {{"custom_id": "jobs/second.py", "source": '''\\
{_CLEAN}'''}},
    ],
    wait=30,
    name="nightly",
    policy=policy["id"],
    labels={{"commit": "9f2c1ab"}},
)
matrix = service.call("GET", f"/v1/audits/{{answer['id']}}/matrix")""",
        answer={
            "id": "aud_...",
            "name": "nightly",
            "status": "judged",
            "verdict": "failed",
            "items": {"total": 2, "pass": 1, "fail": 1, "...": "..."},
            "reasons": [{"custom_id": "jobs/first.py", "rule": "non-leaf-grad-read", "findings": 1, "...": "..."}],
            "...": "...",
        },
    ),
    Step(
        title="Be told",
        text="A webhook is posted to when a run ends or a finding is new, signed as Standard Webhooks has it. The secret "
        "is shown this once. Its deliveries, each try with what came of it, are at `.../deliveries`.",
        command="""\
curl -sS --fail-with-body "$API/v1/webhooks" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"url": "https://hooks.example.com/backprobe", "events": ["run.ended"]}'""",
        python="""\
hook = {"url": "https://hooks.example.com/backprobe", "events": ["run.ended"]}
answer = service.call("POST", "/v1/webhooks", body=hook)""",
        answer={"id": "wh_...", "url": "https://hooks.example.com/backprobe", "secret": "whsec_...", "...": "..."},
    ),
    Step(
        title="When something is refused",
        text="Every error has this one shape (RFC 9457): `code` is stable, `errors` point at the places, `hint` says what "
        "to do, `request_id` finds it in the operator's log. Send a POST again with the same `Idempotency-Key` if no "
        "answer came: it has its effect once. The client does so by itself, and waits where `Retry-After` asks for it.",
        command="""\
curl -sS "$API/v1/runs" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"source": "x = ("}'""",
        python="""\
try:
    service.submit(source="x = (")
except ApiError as error:
    answer = {"status": error.status, "code": error.code, "errors": error.errors}""",
        answer={
            "status": 422,
            "code": "syntax-error",
            "errors": [{"pointer": "#/source", "line": 1, "...": "..."}],
            "...": "...",
        },
    ),
)
