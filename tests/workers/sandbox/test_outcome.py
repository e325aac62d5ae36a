"""The table from facts to outcome, line by line, without any process."""

import signal
from dataclasses import replace

import pytest

from backprobe.record import SCHEMA_VERSION, BadRecord, End, Environment, Header, Raised, Record
from store.runs.limits import Limits
from workers.sandbox.supervisor.outcome import Facts, Verdict, verdict

LIMITS = Limits(cpu_seconds=10)
HEADER = Header(
    schema_version=SCHEMA_VERSION,
    backprobe_version="0",
    tier="full",
    entry="service",
    started_at="2026-11-20T19:52:29.123Z",
    environment=Environment(python="3.11", platform="linux"),
)


def ended_record(code: int = 0) -> Record:
    return Record(header=HEADER, end=End(ending="ended" if code == 0 else "exited", exit_code=code))


def raised(type_: str, message: str) -> Record:
    end = End(ending="raised", exit_code=1, exception=0)
    return Record(header=HEADER, end=end, raised=(Raised(n=0, type=type_, message=message),))


def outcome_of(
    facts: Facts, record: Record | None, refused: BadRecord | None = None, *, canceled: bool = False
) -> Verdict:
    return verdict(facts, LIMITS, record, refused, canceled=canceled)


TABLE = [
    # facts, record, then status, reason, whose, limit
    (Facts(exit_code=0), ended_record(), "succeeded", "ended", None, None),
    (
        Facts(exit_code=0),
        Record(header=HEADER, end=End(ending="exited", exit_code=0)),
        "succeeded",
        "ended",
        None,
        None,
    ),
    (Facts(exit_code=3), ended_record(3), "failed", "exception", "program", None),
    (Facts(exit_code=1), raised("ValueError", "no"), "failed", "exception", "program", None),
    (Facts(exit_code=1), raised("MemoryError", ""), "exceeded", "memory", "limit", "memory_bytes"),
    (
        Facts(exit_code=1),
        raised("RuntimeError", "DefaultCPUAllocator: can't allocate memory"),
        "exceeded",
        "memory",
        "limit",
        "memory_bytes",
    ),
    (Facts(exit_code=5), ended_record(), "failed", "exit", "program", None),
    (Facts(exit_code=0), None, "failed", "record", "program", None),
    (Facts(exit_code=0), Record(header=HEADER), "failed", "record", "program", None),
    (Facts(signal=signal.SIGSEGV), ended_record(), "failed", "signal", "program", None),
    (Facts(signal=signal.SIGKILL, cpu_seconds=1.0), None, "failed", "signal", "program", None),
    (Facts(signal=signal.SIGKILL, cpu_seconds=9.9), None, "exceeded", "cpu", "limit", "cpu_seconds"),
    (Facts(signal=signal.SIGKILL, cpu_seconds=9.2), None, "exceeded", "cpu", "limit", "cpu_seconds"),  # loaded machine
    (Facts(signal=signal.SIGKILL, cpu_seconds=8.3), None, "failed", "signal", "program", None),
    (Facts(signal=signal.SIGXCPU, cpu_seconds=10.2), None, "exceeded", "cpu", "limit", "cpu_seconds"),
    (Facts(signal=signal.SIGXCPU, cpu_seconds=0.1), None, "failed", "signal", "program", None),  # it sent that itself
    (Facts(signal=signal.SIGSEGV, cpu_seconds=10.2), None, "failed", "signal", "program", None),
    (Facts(signal=signal.SIGKILL, stop="wall", cpu_seconds=10.2), None, "exceeded", "wall", "limit", "wall_seconds"),
    (Facts(exit_code=0, stop="wall"), ended_record(), "exceeded", "wall", "limit", "wall_seconds"),
    (Facts(signal=signal.SIGKILL, stop="output"), None, "exceeded", "output", "limit", "output_bytes"),
    (Facts(signal=signal.SIGKILL, stop="record_bytes"), None, "exceeded", "record", "limit", "record_bytes"),
    (Facts(signal=signal.SIGKILL, stop="record_rows"), None, "exceeded", "record", "limit", "record_rows"),
    (Facts(signal=signal.SIGKILL, stop="record_weight"), None, "exceeded", "record", "limit", "record_bytes"),
    (Facts(broken="the warm process was lost, twice"), None, "lost", "sandbox", "ours", None),
]


@pytest.mark.parametrize(("facts", "record", "status", "reason", "whose", "limit"), TABLE, ids=range(len(TABLE)))
def test_the_first_line_that_holds_wins(facts, record, status, reason, whose, limit):
    found = outcome_of(facts, record)
    assert (found.status, found.reason, found.limit_hit) == (status, reason, limit)
    assert (found.error.whose if found.error else None) == whose


def test_a_cancel_wins_over_how_the_program_ended():
    assert outcome_of(Facts(exit_code=0), ended_record(), canceled=True).status == "canceled"
    assert outcome_of(Facts(signal=signal.SIGKILL, stop="canceled"), None, canceled=True).status == "canceled"


def test_what_broke_of_ours_wins_over_a_cancel():
    assert outcome_of(Facts(broken="lost"), None, canceled=True).status == "lost"


def test_a_refused_stream_is_the_programs_fault_whatever_it_says_of_itself():
    found = outcome_of(Facts(exit_code=0, stop="refused"), ended_record(), BadRecord("bad-frame", "no"))
    assert (found.status, found.reason, found.told_by) == ("failed", "record", "supervisor")
    assert found.error is not None
    assert found.error.code == "bad-record"


def test_only_lines_that_rest_on_the_end_frame_are_told_by_the_run():
    told = {reason: outcome_of(facts, record).told_by for facts, record, _, reason, _, _ in TABLE}
    assert {reason for reason, by in told.items() if by == "run"} == {"ended", "exception", "memory"}


def test_no_exit_code_after_go_means_ours():
    for code in range(1, 256):
        assert outcome_of(Facts(exit_code=code), None).status == "failed"


def test_several_processes_that_reach_the_wall_clock_are_told_of_what_waits_for_ever():
    for processes in (1, 2):
        found = verdict(Facts(stop="wall"), replace(LIMITS, processes=processes), None, None, canceled=False)
        assert found.error is not None
        assert ("destroy_process_group" in found.error.message) is (processes == 2)


@pytest.mark.parametrize("level", ["process", "namespace"])
@pytest.mark.parametrize(
    "facts",
    [
        Facts(signal=signal.SIGKILL, cpu_seconds=1.0),
        Facts(signal=signal.SIGKILL, foreign_kills=1),
        Facts(exit_code=1, foreign_kills=1),  # one of several processes was killed, and the program gave up
    ],
)
def test_a_kill_below_the_runs_own_limits_is_not_the_programs_fault(facts, level):
    found = verdict(facts, LIMITS, None, None, canceled=False, level=level)
    assert (found.status, found.reason, found.limit_hit) == ("lost", "sandbox", None)
    assert found.error is not None
    assert found.error.whose == "ours"


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (Facts(signal=signal.SIGKILL, oom_kills=1), "exceeded"),  # at its own limit of memory
        (Facts(signal=signal.SIGKILL, cpu_seconds=9.9), "exceeded"),
        (Facts(signal=signal.SIGKILL, stop="wall", foreign_kills=1), "exceeded"),
        (Facts(signal=signal.SIGSEGV), "failed"),
        (Facts(exit_code=0, foreign_kills=1), "succeeded"),  # it went on without what was killed
    ],
)
def test_what_the_program_did_itself_stays_its_own(facts, status):
    assert verdict(facts, LIMITS, ended_record(), None, canceled=False, level="namespace").status == status
