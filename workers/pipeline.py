"""From a claimed snippet to its outcome, record, findings and the reasons for missing gradients.

It knows neither Celery nor SQL: the same pipeline runs in a test, with nothing but a supervisor.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from backprobe.record import Record
from backprobe.rules import Judgement, JudgeOptions, WhyNone
from workers.judging_budget import judged_in_time
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import OnRows, Supervisor

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a snippet.

    Attributes:
        judgement: None: there was no record to judge, or judging it failed.
        whys: Why tensors have no gradient, by tensor.
    """

    outcome: Outcome
    judgement: Judgement | None = None
    whys: Mapping[int, WhyNone] = field(default_factory=dict[int, WhyNone])


def run(
    supervisor: Supervisor,
    job: Job,
    cancel: threading.Event | None = None,
    on_rows: OnRows | None = None,
    options: JudgeOptions | None = None,
    step: Callable[[str], AbstractContextManager[None]] = nullcontext,
) -> Result:
    """Run a snippet and judge its record; blocks until both are done.

    `on_rows` hears of the record as it comes; `step` is entered by name around the sandbox and around the rules.
    """
    with step("sandbox"):
        outcome = supervisor.run(job, on_rows, cancel)
    if outcome.record is None:
        return Result(outcome=outcome)
    with step("judge"):
        return judge_record(outcome, outcome.record, options)


def judge_record(outcome: Outcome, record: Record, options: JudgeOptions | None = None) -> Result:
    """Judge a record. One that no rule can digest is a stranger's work: it is kept without a judgement."""
    try:
        judgement, whys = judged_in_time(record, options)
    except Exception as error:  # noqa: BLE001 - the fence around a task: the run itself was right and is kept
        _log.error("a record could not be judged: %s", type(error).__name__)
        return Result(outcome=outcome)
    return Result(outcome=outcome, judgement=judgement, whys=whys)
