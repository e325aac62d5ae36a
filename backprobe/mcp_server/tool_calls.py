"""How tools are called: in threads, with answers of bounded length, and with a program that ends with its call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from backprobe.mcp_server.answers import MOST_BYTES, cut_answer
from backprobe.mcp_server.engines import NotRun
from backprobe.mcp_server.known_runs import NoRun
from backprobe.mcp_server.structured import Answer
from backprobe.rules.framework.manual import UnknownRule

READS: Final = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

RUNS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)

MaxBytes = Annotated[int, Field(description="Longest answer; 8000 unless you need the rest of one that was cut.")]

_PROGRESS_SECONDS: Final = 1.0
"""Between two notifications, to a client that asks for them."""


def reading_tool(server: MCPServer[Any], turn: threading.Lock) -> Callable[[Any], Any]:
    """Return a decorator that adds a function as a tool which answers at once."""

    def add(function: Callable[..., str | Answer]) -> None:
        @functools.wraps(function)
        def answer(*, max_bytes: int = MOST_BYTES, **given: Any) -> CallToolResult:
            with turn:
                return _result(lambda: function(**given), max_bytes)

        _add_tool(server, answer, function, READS)

    return add


def running_tool(server: MCPServer[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds a function as a tool which runs a program, in a thread.

    The function's `stop` is an event: it is set when nobody waits for the answer any more.
    """
    programs = anyio.Lock()

    def add(function: Callable[..., Answer]) -> None:
        @functools.wraps(function)
        async def answer(*, context: Context[Any, Any], max_bytes: int = MOST_BYTES, **given: Any) -> CallToolResult:
            stop = threading.Event()
            async with programs:
                call = functools.partial(_result, lambda: function(stop=stop, **given), max_bytes)
                return await _with_progress(asyncio.to_thread(call), context, stop)

        answer.__annotations__ = {"context": Context}
        _add_tool(server, answer, function, RUNS)

    return add


async def _with_progress(
    work: Coroutine[Any, Any, CallToolResult], context: Context[Any, Any], stop: threading.Event
) -> CallToolResult:
    """Wait for the answer and report progress; a cancel sets `stop`, and is over when the program has ended."""
    began, task = time.monotonic(), asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=_PROGRESS_SECONDS))[0]:
            passed = time.monotonic() - began
            await context.report_progress(passed, message=f"the program has run for {passed:.0f} s")
        return task.result()
    finally:
        stop.set()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(task, return_exceptions=True)


def _result(function: Callable[[], str | Answer], max_bytes: int) -> CallToolResult:
    """Return the answer, cut to its bytes. What cannot be done is an answer for the model, not a crash."""
    try:
        said = function()
    except (NotRun, NoRun, UnknownRule) as error:
        raise ToolError(cut_answer(str(error))) from None
    text, values = (said, None) if isinstance(said, str) else (said.text, said.values)
    return CallToolResult(
        content=[TextContent(type="text", text=cut_answer(text, max_bytes))], structured_content=values
    )


def _add_tool(
    server: MCPServer[Any], answer: Callable[..., Any], function: Callable[..., Any], annotations: ToolAnnotations
) -> None:
    """Add it with the parameters of `function`, but for `stop`, and with `max_bytes`."""
    signature = inspect.signature(function, eval_str=True)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "stop"]
    keyword = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    more = [keyword("max_bytes", default=MOST_BYTES, annotation=MaxBytes)]
    if annotations is RUNS:
        more.append(keyword("context", annotation=Context))
    answer.__signature__ = inspect.Signature([*kept, *more])  # type: ignore[attr-defined] - inspect reads it
    del answer.__wrapped__  # type: ignore[attr-defined] - its annotations would be read instead
    server.add_tool(answer, annotations=annotations, structured_output=False)
