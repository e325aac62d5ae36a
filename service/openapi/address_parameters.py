"""The parameters of the OpenAPI document that stand in addresses and in headers; queries are read off their models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from store.queries import LISTABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATH_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "run": {"type": "string", "description": "Id of a run.", "pattern": "^run_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "no": {"type": "integer", "minimum": 0, "description": "Number of a tensor within its run."},
    "snippet": {
        "type": "string",
        "description": "Id of a snippet.",
        "pattern": "^snp_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "path": {"type": "string", "description": "Path of a file of the snippet; its slashes stay.", "maxLength": 200},
    "n": {"type": "integer", "minimum": 0, "description": "Number of the frame, from 0."},
    "node": {"type": "integer", "minimum": 0, "description": "Number of an autograd node within its run."},
    "call": {"type": "integer", "minimum": 0, "description": "Number of a backward call within its run, from 0."},
    "table": {
        "type": "string",
        "description": "A table of the record; docs/reference/record.md tells its fields.",
        "enum": list(LISTABLE),
    },
    "name": {"type": "string", "description": "Name or code of a rule.", "pattern": "^[A-Za-z0-9-]{1,64}$"},
    "finding": {"type": "string", "description": "Id of a finding.", "pattern": "^f_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "group": {
        "type": "string",
        "description": "Id of a group of findings.",
        "pattern": "^fg_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "key": {"type": "string", "description": "Id of a key.", "pattern": "^key_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "project": {"type": "string", "description": "Id of a project.", "pattern": "^prj_[A-Za-z0-9]{1,40}$"},
    "webhook": {
        "type": "string",
        "description": "Id of a webhook.",
        "pattern": "^wh_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "delivery": {
        "type": "string",
        "description": "Id of a delivery.",
        "pattern": "^dlv_[0-7][0-9A-HJKMNP-TV-Z]{25}$",
    },
    "audit": {"type": "string", "description": "Id of an audit.", "pattern": "^aud_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "policy": {"type": "string", "description": "Id of a policy.", "pattern": "^pol_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "code": {"type": "string", "description": "Code of a problem.", "pattern": "^[a-z-]+$"},
}

_ETAG: Final = r'(W/)?"[!#-~]*"'

_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "Idempotency-Key": {
        "description": "Yours, new for each request: sent again within a day it has no second effect.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "Prefer": {
        "description": "`wait=N`: answer when the run has ended, or after N seconds, at most 30.",
        "schema": {"type": "string"},
    },
    "traceparent": {
        "description": "W3C trace context: the worker's log continues it. One that cannot be read is ignored.",
        "schema": {"type": "string"},
    },
    "Accept": {
        "description": "Media type of the answer; `format` says it too, and wins.",
        "schema": {"type": "string"},
    },
    "Last-Event-ID": {
        "description": "`id` of the last event that was received: the stream goes on behind it.",
        "schema": {"type": "string", "pattern": "^[0-9]{0,9}$"},
    },
    "Range": {
        "description": "`bytes=FIRST-LAST`: only those (RFC 9110); the answer is 206.",
        "schema": {"type": "string"},
    },
    "If-Match": {
        "description": "The ETag of what is changed, as it was read: 412 if it has changed since, 428 without.",
        "required": True,
        "schema": {"type": "string", "pattern": rf"^(\*|{_ETAG}( *, *{_ETAG})*)$"},
    },
    "If-None-Match": {
        "description": "An ETag from before: the answer is 304 if nothing has changed.",
        "schema": {"type": "string"},
    },
}


def path_parameters(path: str) -> list[dict[str, Any]]:
    """Describe the parameters of an address."""
    found = []
    for name in re.findall(r"{(\w+)}", path):
        schema = dict(_PATH_PARAMETERS[name])
        text = schema.pop("description")
        found.append({"name": name, "in": "path", "required": True, "description": text, "schema": schema})
    return found


def header_parameters(names: Iterable[str]) -> list[dict[str, Any]]:
    """Those of the headers that an operation reads."""
    return [{"name": name, "in": "header", **_HEADERS[name]} for name in names]
