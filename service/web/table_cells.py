"""A list's rows as a table: columns read off the class that describes a row, cells for CSV and Parquet.

1. The columns of a list are the same whatever its rows hold: a part of a row is `state.is_leaf`, a list is JSON text.
2. A cell of CSV that a spreadsheet would take for a formula is quoted with an apostrophe (OWASP, "CSV Injection").
"""

from __future__ import annotations

import csv
import dataclasses
import io
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBERS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_json: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its name with dots, the way to its value, and what it holds.

    Attributes:
        kind: `bool`, `int`, `float`, `text`, or `json` for objects and lists.
    """

    name: str
    steps: tuple[str, ...]
    kind: Literal["bool", "int", "float", "text", "json"]

    def read_value(self, row: Any) -> Any:
        """Return the value in a row of plain JSON; None if an object on its path is null."""
        for step in self.steps:
            if row is None:
                return None
            row = row.get(step)
        return row


def columns(row: type[Any], *, name: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """List the columns of rows of this dataclass, in order of its fields."""
    found: list[Column] = []
    hints = get_type_hints(row)
    for field in dataclasses.fields(row):
        steps = (*name, "class" if field.name == "cls" else field.name)
        kind = _bare(hints[field.name])
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            found += columns(kind, name=steps)
        else:
            found.append(Column(name=".".join(steps), steps=steps, kind=_kind(kind)))
    return tuple(found)


def _bare(hint: Any) -> Any:
    """Return the type without `| None`."""
    if get_origin(hint) in {Union, types.UnionType}:
        options = [option for option in get_args(hint) if option is not type(None)]
        return options[0] if len(options) == 1 else Any
    return hint


def _kind(hint: Any) -> Literal["bool", "int", "float", "text", "json"]:
    if get_origin(hint) is Literal:
        return "text" if all(isinstance(value, str) for value in get_args(hint)) else "json"
    kinds: dict[Any, Literal["bool", "int", "float", "text"]] = {bool: "bool", int: "int", float: "float", str: "text"}
    return kinds.get(hint, "json")


def csv_header(of: Sequence[Column]) -> bytes:
    """Write the first line."""
    return _lines([[column.name for column in of]])


def csv_rows(of: Sequence[Column], rows: Iterable[Any]) -> bytes:
    """Lines of CSV, ended by CR LF (RFC 4180); null is the empty cell, true and false are words."""
    return _lines([[_cell(column, column.read_value(row)) for column in of] for row in rows])


def _cell(column: Column, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if column.kind == "json":
        value = _json.encode(value).decode()
    text = str(value)
    return f"'{text}" if column.kind in {"text", "json"} and text.startswith(_FORMULA) else text


def _lines(cells: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(cells)
    return text.getvalue().encode("utf-8", "backslashreplace")


def values(column: Column, rows: Sequence[Any]) -> list[Any]:
    """Return the column's values for Parquet: numbers as numbers, NaN as itself, parts as JSON text."""
    found = [column.read_value(row) for row in rows]
    if column.kind == "float":
        return [_NUMBERS.get(value, value) if isinstance(value, str) else value for value in found]
    if column.kind == "json":
        return [None if value is None else _json.encode(value).decode() for value in found]
    return found
