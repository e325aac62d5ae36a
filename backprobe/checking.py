"""`backprobe.check(fn, ...)`: a function is called under capture; what the rules find fails the caller's unit test.

    def test_the_model_learns():
        backprobe.check(train_step, model, batch)    # AssertionError with the finding's text

The function runs in this process with its own arguments. Functions of its project (the folder of its file and below)
carry taps for the length of the call; torch and installed packages are seen where they are called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from backprobe.severity import LEVELS, Level

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding

_MOST_SHOWN: Final = 5


class GradientFinding(AssertionError):
    """The rules found something in a function that was checked; the message is the findings' text.

    Attributes:
        findings: All that were found and are not ignored, worst first.
    """

    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


def check(
    function: Callable[..., Any],
    *args: Any,
    fail_on: Level | None = "warning",
    ignore: Iterable[str] = (),
    tier: Literal["state", "grad", "full"] = "full",
    **kwargs: Any,
) -> tuple[Finding, ...]:
    """Call `function(*args, **kwargs)` under capture and judge what was seen.

    Inside another capture of this process the function is only called: that capture sees it, and judges it.

    Args:
        function: What trains, or does one step of it. What it raises is raised here.
        fail_on: The least level that fails; None: nothing does, the findings are only handed out.
        ignore: Rules to leave out: names, codes, beginnings of codes. tier: how much is recorded.

    Returns:
        The findings that are not suppressed, worst first; with `fail_on`, those below it.

    Raises:
        GradientFinding: an AssertionError: something at least this bad was found.
        ValueError: `fail_on` is no level, or `ignore` names a rule that does not exist.
    """
    from backprobe.capture import Options
    from backprobe.capture.program.block import Block
    from backprobe.capture.program.other_capture import leave_recording
    from backprobe.rules import judge

    __tracebackhide__ = True
    options = judging(fail_on, ignore)
    if leave_recording("backprobe.check") is not None:
        function(*args, **kwargs)
        return ()
    block = Block([function], project_of(function), Options(tier=tier))
    with block:
        function(*args, **kwargs)
    record = _there(block.record)
    judgement = judge(record, options)
    findings = tuple(finding for finding in judgement.findings if finding.suppressed is None)
    failing = [] if fail_on is None else judgement.at_least(fail_on)
    if failing:
        name = getattr(function, "__qualname__", repr(function))
        raise GradientFinding(message(f"`{name}`", record, failing), findings)
    return findings


def judging(fail_on: Level | None, ignore: Iterable[str]) -> Any:
    """Build the options to judge by.

    Raises:
        ValueError: a level or a rule is unknown.
    """
    from backprobe.rules import BadOption, options_from
    from backprobe.rules.framework.manual import every_rule

    if fail_on is not None and fail_on not in LEVELS:
        raise ValueError(f"fail_on={fail_on!r} is none of {', '.join(LEVELS)}")
    names = [ignore] if isinstance(ignore, str) else list(ignore)
    try:
        return options_from({"ignore": names} if names else {}, every_rule())
    except BadOption as error:
        raise ValueError(str(error)) from None


def project_of(function: Any) -> Path:
    """Return the folder below which files get taps: that of the function's file."""
    try:
        found = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        found = None
    return Path.cwd() if found is None else Path(found).resolve().parent


def message(what: str, record: Record, findings: Sequence[Finding]) -> str:
    """Write what a failed test says: how many findings, then each with its lines of source, evidence and fix."""
    from backprobe.show.amounts import count_noun

    lines = [f"{count_noun(len(findings), 'finding')} of Backprobe in {what}", *_texts(record, findings)]
    if len(findings) > _MOST_SHOWN:
        lines.append(f"... and {len(findings) - _MOST_SHOWN} more")
    return "\n".join(lines)


def _texts(record: Record, findings: Sequence[Finding]) -> Iterator[str]:
    from backprobe.rules.framework.tables import shared_tables
    from backprobe.show.formats.finding_text import finding_lines
    from backprobe.show.terminal_style import Ink

    with shared_tables(record):
        for finding in findings[:_MOST_SHOWN]:
            yield ""
            yield from finding_lines(record, finding, Ink(False))


def _there(record: Record | None) -> Record:
    if record is None:
        raise RuntimeError("the call left no record")
    return record
