"""What the threat model says of each thing that tenants share is what the code has by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from backprobe.record.encoding.codec import MOST_BATCH_ROWS
from service.api.audits import audit_lines, bad_lines
from service.api.records import record_file
from service.api.runs import recorders as recorder_views
from service.app import MOST_BODY_BYTES
from service.limits import request_bodies, steps, turns
from service.limits.seats import share
from service.program_checks import MOST_CHARACTERS, MOST_FILES
from service.schemas.audit_requests import MOST_ITEMS
from service.server.http_server import MOST_CONNECTIONS
from service.settings import RateLimits
from service.web.body_lines import LINE_BYTES
from store.access.tenants import every
from store.audits import audit_uploads
from store.recorders import judging, live_view, recorders
from store.runs.limits import WARM_BYTES, tenant_memory_bytes
from store.runs.snippets import UNUSED_SECONDS
from workers import judging_budget
from workers.machine_memory import KEPT_BYTES, memory_for_runs
from workers.upkeep import sender
from workers.watched_judging import SHARE_OF_ALL

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"
MIB = 1 << 20
GIB = 1 << 30


def seats(most: int, of: str = "") -> tuple[str, str]:
    """What there is, and what a tenant and a key have of it."""
    return f"{most:,}{of}", f"{share(most):,}, a key {share(share(most)):,}"


def bound(context, tenant) -> dict[str, tuple[str, str]]:
    """Resource -> how the cells of its row begin: what there is, and what a tenant has."""
    rates = RateLimits()
    assert (rates.reads * 10, rates.submits * 10) == (rates.tenant_reads, rates.tenant_submits)
    threads, at_work = context.settings.threads, context.settings.tenant_threads
    of_tenant, of_strangers = request_bodies.BodyRoom(context.senders).shares(request_bodies.MOST_BYTES)
    return {
        "streams of events": seats(context.streams.seats.most),
        "threads that wait": seats(context.waiters._most, f" of {threads}"),
        "long lists": seats(context.lists.most),
        "records in memory": seats(context.records.most),
        "ends of recorders": seats(context.ends.most),
        f"bodies above {request_bodies.SMALL_BYTES >> 10} KiB": (
            f"{request_bodies.MOST_BYTES // GIB} GiB",
            f"{of_tenant / GIB} GiB, with what all unknown keys have together: {of_strangers / GIB} GiB",
        ),
        "a queue": (
            f"{context.settings.most_queued:,} runs",
            f"{share(context.settings.most_queued):,}, or its quota ({tenant['max_queued']:,})",
        ),
        "slots of live workers": ("those of each queue", "three quarters, and one at least"),
        "memory of a worker's runs": (
            "seven eighths of the machine's or the container's, without 1 GiB at least",
            "three quarters, and what leaves room for a run with the default limits",
        ),
        "tries at webhooks": (str(sender.SEATS), f"{sender.SEATS_OF_TENANT}, one webhook {sender.SEATS_OF_ONE}"),
        "connections": (f"{MOST_CONNECTIONS:,}", "all"),
        "threads, processor": (
            f"{threads} threads",
            (
                f"while another asks: {at_work} reads, {max(1, at_work // 2)} write, and {at_work} frames or ends at work;"
                f" alone: {share(threads)} of each"
            ),
        ),
        "the same, in a minute": (
            "",
            f"{rates.tenant_reads:,} reads and {rates.tenant_submits:,} submits, a key a tenth",
        ),
        "programs": (
            "",
            (
                f"{MOST_FILES} files of {MOST_CHARACTERS:,} characters, {MOST_BODY_BYTES // MIB} MiB in one request;"
                f" any number, and one that nobody runs for {UNUSED_SECONDS / 86400:.0f} days"
            ),
        ),
        "audits": (
            "",
            (
                f"{MOST_ITEMS:,} items in {MOST_BODY_BYTES // MIB} MiB as JSON; {audit_lines.MOST_LINES:,} in"
                f" {audit_lines.MOST_BYTES // MIB} MiB as NDJSON, of which {bad_lines.MOST} may be bad,"
                f" or {bad_lines.MOST_SECONDS:.0f} s of them; {audit_uploads.AT_ONCE} in one transaction"
            ),
        ),
        "uploaded records": (
            f"{context.records.most} at a time",
            f"{record_file.MOST_BYTES // MIB} MiB and {record_file.MOST_ROWS:,} rows each",
        ),
        "recorders at work": (
            "",
            (
                f"{recorders.MOST_OPEN:,} runs, each {recorders.MOST_BYTES // MIB} MiB, {recorders.MOST_ROWS:,} rows and"
                f" {recorders.MOST_FRAMES:,} frames; {recorder_views.MOST_REQUEST_BYTES // MIB} MiB and"
                f" {recorder_views.MOST_FRAMES_AT_ONCE:,} frames in one request"
            ),
        ),
        "recorders' runs that are shown": (str(live_view.MOST_SHOWN), "what others leave"),
        "recorders' runs that are judged": (f"{judging.MOST_OPEN} in a fifth of the time", ""),
    }


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables of resources."""
    lines = [line for line in text.splitlines() if line.startswith("|") and line.count("|") == 5]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def unlike(text: str, code_defaults: dict[str, tuple[str, str]]) -> dict[str, list[list[str]]]:
    """Resources of which the text says something else, with what it says."""
    found = {}
    for name, (there_is, tenant_has) in code_defaults.items():
        mine = [row for row in rows(text) if row[0].startswith(name)]
        if len(mine) != 1 or not (mine[0][1].startswith(there_is) and mine[0][2].startswith(tenant_has)):
            found[name] = mine
    return found


@pytest.fixture(scope="module")
def code_defaults(module_make):
    """The default quotas and limits of the code."""
    context = module_make().context
    with context.database.read() as transaction:
        (first,) = every(transaction)
    assert first.quotas["max_record_bytes"] == 100 * GIB
    return bound(context, first.quotas)


def test_the_threat_model_has_the_numbers_of_the_code(code_defaults):
    assert unlike(PAGE.read_text(), code_defaults) == {}


def test_a_number_that_differs_is_seen(code_defaults):
    text = PAGE.read_text().replace("| 1,000 | 750, a key 562 |", "| 1,000 | 1,000, a key 562 |")
    assert list(unlike(text, code_defaults)) == ["streams of events"]


def test_the_rest_of_its_numbers_are_those_of_the_code_too():
    text = " ".join(PAGE.read_text().split())
    assert SHARE_OF_ALL == 0.2
    assert (memory_for_runs(64 * GIB), KEPT_BYTES) == (56 * GIB, GIB)
    assert tenant_memory_bytes(64 * GIB) == 48 * GIB
    assert f"copy pages of the warm process, {WARM_BYTES // MIB} MiB with a cgroup" in text
    assert f"after {turns.LONGEST_SECONDS:.0f} s 503" in text
    assert (
        f"a body of {MOST_BODY_BYTES // MIB} MiB, frames of {recorder_views.MOST_REQUEST_BYTES // MIB} MiB,"
        f" {(audit_lines._BATCH_BYTES + LINE_BYTES) // MIB} MiB of an audit's lines,"
        f" a record of {record_file.MOST_BYTES // MIB} MiB"
    ) in text
    rates = RateLimits()
    assert f"{rates.tenant_reads + rates.tenant_submits:,} requests a minute by default" in text
    judged = judging_budget
    assert (
        f"the rule at work after {judged.RULE_SECONDS:.0f} s is ended, then each that takes another"
        f" {judged.NEXT_SECONDS:.0f} s; after {judged.ALL_SECONDS:.0f} s none begins,"
        f" after {judged.ALL_SECONDS + judged.LAST_SECONDS:.0f} s there are no findings"
    ) in text
    assert f"while each takes less than {1000 * steps.STEP_SECONDS:.0f} ms" in text
    assert f"for as long as that took, up to {steps.REST_SECONDS} s" in text
    assert f"it has {MOST_BATCH_ROWS:,} rows at most" in text
    assert UNUSED_SECONDS == 7 * 86400
    assert "deleted after seven days" in text
