"""What a run says of a program's files, in one shape, whether a service told it or a local engine."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from backprobe.rules.framework.finding import Finding


class Gradless(msgspec.Struct, frozen=True, kw_only=True):
    """Why a tensor's `.grad` is None: the engine's verdict, the line that decided it, and the words for it."""

    verdict: str
    line: int | None = None
    text: str = ""


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """The last state of a named tensor.

    Attributes:
        path, line: Where it was first bound, lines from 1.
        gradient: What `.grad` holds, in words; None: it is None.
        arrived: The gradient that reached it and was not kept, in words; None: none did, or it was not recorded.
        times: How many tensors this one stands for: the passes of a loop.
    """

    name: str
    path: str
    line: int
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    is_leaf: bool = False
    requires_grad: bool = False
    gradient: str | None = None
    arrived: str | None = None
    why: Gradless | None = None
    times: int = 1


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A backward call, and how many bytes its graph still held when it had ended."""

    path: str
    line: int
    kept_bytes: int


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The program did not end well. `path`, `line`: where; None: not known."""

    message: str
    path: str | None = None
    line: int | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one run says.

    Attributes:
        entry: The file that was run. texts: the text of each file that it speaks of, as it ran. Both by absolute path.
        summary: One line for a status bar.
        page: The run's page; None: the run was local.
        tensors, calls, findings: Their paths are keys of `texts`.
    """

    entry: str
    texts: dict[str, str]
    findings: tuple[Finding, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    calls: tuple[Call, ...] = ()
    failure: Failure | None = None
    summary: str = ""
    page: str | None = None


class Unreadable(Exception):
    """An answer or report has another shape than ours. The message says of what."""


def paths_of(result: Result) -> frozenset[str]:
    """Every path that a result speaks of."""
    found = {finding.location.path for finding in result.findings}
    found |= {row.location.path for finding in result.findings for row in finding.related}
    found |= {edit.path for finding in result.findings for fix in finding.fixes for edit in fix.edits}
    found |= {row.path for row in (*result.tensors, *result.calls)}
    if result.failure is not None and result.failure.path is not None:
        found.add(result.failure.path)
    return frozenset(found)


def place_result(result: Result, entry: str, files: Mapping[str, tuple[str, str]]) -> Result:
    """Make the paths absolute, and leave out what is about a file that is not among `files`.

    Args:
        result: With paths as they were told.
        entry: The file that was run, absolute.
        files: By a path as it was told: the absolute path, and the text that ran.
    """
    absolute = {told: path for told, (path, _) in files.items()}
    failure = result.failure
    if failure is not None:
        known = None if failure.path is None else absolute.get(failure.path)
        failure = msgspec.structs.replace(failure, path=known, line=failure.line if known else None)
        if known is None and result.failure is not None and result.failure.line and result.failure.path is None:
            failure = msgspec.structs.replace(failure, path=entry, line=result.failure.line)
    return msgspec.structs.replace(
        result,
        entry=entry,
        texts=dict(files.values()),
        findings=tuple(
            _placed_finding(finding, absolute) for finding in result.findings if finding.location.path in absolute
        ),
        tensors=tuple(
            msgspec.structs.replace(row, path=absolute[row.path]) for row in result.tensors if row.path in absolute
        ),
        calls=tuple(
            msgspec.structs.replace(row, path=absolute[row.path]) for row in result.calls if row.path in absolute
        ),
        failure=failure,
    )


def _placed_finding(finding: Finding, absolute: Mapping[str, str]) -> Finding:
    replace = msgspec.structs.replace
    return replace(
        finding,
        location=replace(finding.location, path=absolute[finding.location.path]),
        related=tuple(
            replace(row, location=replace(row.location, path=absolute[row.location.path]))
            for row in finding.related
            if row.location.path in absolute
        ),
        fixes=tuple(
            replace(fix, edits=tuple(replace(edit, path=absolute[edit.path]) for edit in fix.edits))
            for fix in finding.fixes
            if all(edit.path in absolute for edit in fix.edits)
        ),
    )


def encode_result(result: Result) -> bytes:
    """As JSON, to be kept."""
    return msgspec.json.encode(result)


def decode_result(kept: bytes) -> Result:
    """Decode a stored result.

    Raises:
        Unreadable: another version of Backprobe wrote it, or nobody did.
    """
    try:
        return msgspec.json.decode(kept, type=Result)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"a stored result: {error}") from None
