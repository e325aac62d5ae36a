"""Tables: questions that several rules ask of a record, each answered once per judgement."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from backprobe.record import Record

T = TypeVar("T")


@dataclass(slots=True)
class _Tables:
    """The answers about one record, and which of them were read from the program's text.

    Attributes:
        of_text: Questions whose answers came from the text. reads_text: so has what is asked now.
    """

    record: Record
    answers: dict[Callable[..., Any], Any] = field(default_factory=dict[Callable[..., Any], Any])
    of_text: set[Callable[..., Any]] = field(default_factory=set[Callable[..., Any]])
    reads_text: bool = False


_open: ContextVar[_Tables | None] = ContextVar("_open", default=None)


@contextmanager
def shared_tables(record: Record) -> Generator[None]:
    """Inside, each table of `record` is computed once; afterwards nothing of it is kept. May be nested."""
    held = _open.get()
    if held is not None and held.record is record:
        yield
        return
    token = _open.set(_Tables(record))
    try:
        yield
    finally:
        _open.reset(token)


def table(question: Callable[[Record], T]) -> Callable[[Record], T]:
    """Answer from the tables that are open for this record; with none open, open them for this one answer."""

    @wraps(question)
    def answer(record: Record) -> T:
        held = _open.get()
        if held is None or held.record is not record:
            with shared_tables(record):
                return question(record)
        try:
            found = held.answers[question]
        except KeyError:
            return _computed(held, question)
        if not held.reads_text and question in held.of_text:
            held.reads_text = True
        return found

    return answer


def _computed(held: _Tables, question: Callable[[Record], T]) -> T:
    before, held.reads_text = held.reads_text, False
    found = held.answers[question] = question(held.record)
    if held.reads_text:
        held.of_text.add(question)
    held.reads_text = held.reads_text or before
    return found


def note_text_read() -> None:
    """What is asked now is answered from the program's text."""
    held = _open.get()
    if held is not None:
        held.reads_text = True


@contextmanager
def text_reads() -> Generator[Callable[[], bool]]:
    """Gives a function that says whether anything was answered from the program's text inside."""
    held = _open.get()
    if held is None:
        yield lambda: False
        return
    before, held.reads_text = held.reads_text, False
    try:
        yield lambda: held.reads_text
    finally:
        held.reads_text = held.reads_text or before
