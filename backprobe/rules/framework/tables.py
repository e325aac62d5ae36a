"""Tables: questions that several rules ask of a record, each answered once per judgement."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from backprobe.record import Record

T = TypeVar("T")
_open: ContextVar[tuple[Record, dict[Callable[..., Any], Any]] | None] = ContextVar("_open", default=None)


@contextmanager
def shared_tables(record: Record) -> Generator[None]:
    """Inside, each table of `record` is computed once; afterwards nothing of it is kept. May be nested."""
    held = _open.get()
    if held is not None and held[0] is record:
        yield
        return
    token = _open.set((record, {}))
    try:
        yield
    finally:
        _open.reset(token)


def table(question: Callable[[Record], T]) -> Callable[[Record], T]:
    """Answer from the tables that are open for this record; with none open, open them for this one answer."""

    @wraps(question)
    def answer(record: Record) -> T:
        held = _open.get()
        if held is None or held[0] is not record:
            with shared_tables(record):
                return question(record)
        answers = held[1]
        try:
            return answers[question]
        except KeyError:
            pass
        found = answers[question] = question(record)
        return found

    return answer
