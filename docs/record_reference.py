"""The reference of the record, made of its types: tables, fields, units, keys, tiers, versions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from backprobe.record import KEYS, REFERENCES, SCHEMA_VERSION, TABLES, End, Environment, Header, Row, Statistics
from backprobe.record.encoding.versions import since, tier
from backprobe.record.integrity import LISTED

ROWS_IN_ROWS = "Rows inside rows"
_ENTRY = re.compile(r"^([a-z_0-9]+(?:, [a-z_0-9]+)*): (.+)$")


def field_texts(row: type[Any]) -> dict[str, str]:
    """What the docstring says of each field: entries `name: text` under "Attributes:", continued lines deeper."""
    _, _, listed = (inspect.getdoc(row) or "").partition("Attributes:\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in listed.splitlines():
        if not line.startswith("    "):
            break
        entry = _ENTRY.match(line[4:])
        if entry is not None and not line.startswith("     "):
            names = entry[1].split(", ")
            texts |= dict.fromkeys(names, entry[2])
        else:
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    return texts


def may_be_none(field: Any) -> bool:
    """The field's type has None in it."""
    kind = msgspec.inspect.type_info(field.type)
    return isinstance(kind, msgspec.inspect.UnionType) and kind.includes_none


def undocumented(row: type[Any]) -> list[str]:
    """Fields that the docstring leaves out, fields it names that are not there, and None without its meaning."""
    texts, fields = field_texts(row), {field.name: field for field in msgspec.structs.fields(row)}
    found = [f"{row.__name__}.{name}" for name in fields.keys() ^ texts.keys()]
    silent = [name for name, field in fields.items() if may_be_none(field) and "None: " not in texts.get(name, "")]
    return sorted(found + [f"{row.__name__}.{name}: what None means" for name in silent])


def every_row() -> dict[str, type[Any]]:
    """What the reference tells of, by heading: the frames at the ends, the tables, the rows that lie in rows."""
    told: dict[str, type[Any]] = {"header": Header, "environment": Environment, "end": End, **TABLES, "": Statistics}
    inner = {row.__name__: row for table in TABLES.values() for row in _inner(table)}
    return {name: row for name, row in told.items() if name} | {"Statistics": Statistics} | inner


def _inner(row: type[Any]) -> Iterator[type[Any]]:
    for field in msgspec.structs.fields(row):
        for kind in _parts(msgspec.inspect.type_info(field.type)):
            if isinstance(kind, msgspec.inspect.StructType):
                yield kind.cls


def _parts(kind: Any) -> Iterator[Any]:
    match kind:
        case msgspec.inspect.UnionType():
            for part in kind.types:
                yield from _parts(part)
        case msgspec.inspect.VarTupleType():
            yield from _parts(kind.item_type)
        case _:
            yield kind


def type_text(kind: Any) -> str:
    """A type in words."""
    match kind:
        case msgspec.inspect.UnionType():
            return " or ".join(type_text(part) for part in kind.types if not isinstance(part, msgspec.inspect.NoneType))
        case msgspec.inspect.BoolType():
            return "bool"
        case msgspec.inspect.IntType():
            return "int" if kind.ge is None or kind.ge < 0 else f"int >= {kind.ge}"
        case msgspec.inspect.FloatType():
            return "float" if kind.ge is None else "finite float"
        case msgspec.inspect.StrType():
            return f"text, at most {kind.max_length:,}" if kind.max_length else "text"
        case msgspec.inspect.BytesType():
            return f"bytes, at most {kind.max_length:,}"
        case msgspec.inspect.LiteralType():
            return "one of " + ", ".join(f"`{value}`" for value in sorted(map(str, kind.values)))
        case msgspec.inspect.VarTupleType():
            most = f", at most {kind.max_length:,}" if kind.max_length else ""
            return f"list of {type_text(kind.item_type)}{most}"
        case msgspec.inspect.DictType():
            return f"{type_text(kind.value_type)}, by name"
        case msgspec.inspect.StructType():
            return f"[{kind.cls.__name__}](#{kind.cls.__name__.lower()})"
    raise TypeError(f"a record has no such type: {kind}")


def unit(table: str, field: str) -> str:
    """Return the unit that a field's name or its reference says; the rest is in its text."""
    target = REFERENCES.get(table, {}).get(field) or LISTED.get(table, {}).get(field, (None, None))[1]
    if target is not None:
        return f"row of [{target}](#{target})"
    if field in KEYS.get(table, ()):
        return "number"
    for ending, told in (("_ns", "ns"), ("_bytes", "bytes"), ("line", "line, from 1"), ("col", "code point, from 1")):
        if field.endswith(ending):
            return told
    return ""


_HEAD = f"""\
Version {SCHEMA_VERSION}. Every table, every field, in the order in which they lie on the wire: a row is an array, and
optional fields at its end may be left out where they hold their default. *Tier*: the lowest one that fills it. *Since*:
the version it came with; what a record of an older version lacks is not recorded, which is not the same as none.
`backprobe/record/encoding/codec.py` tells how frames lie in a file."""


def reference(notice: str) -> str:
    """The page."""
    parts = [f"# The record\n\n{notice}\n\n{_HEAD}"]
    for name, row in every_row().items():
        texts, is_table = field_texts(row), name in TABLES
        summary = (inspect.getdoc(row) or "").partition("\n\nAttributes:")[0].replace("\n", " ")
        head = f"\n## {name}\n\n{summary}\n"
        if is_table:
            keys = ", ".join(f"`{key}`" for key in KEYS[name])
            head += f"\nKey: {keys}. Tier: {tier(name)}. Since: {since(name)}.\n"
        parts += [head, "| field | type | unit | meaning | None | tier | since |\n|---|---|---|---|---|---|---|"]
        for field in msgspec.structs.fields(row):
            meaning, _, none = texts[field.name].partition("None: ")
            kind = type_text(msgspec.inspect.type_info(field.type))
            default = "" if field.required else ", optional"
            cells = (
                f"`{field.name}`",
                f"{kind}{default}",
                unit(name, field.name),
                meaning.strip(),
                none,
                tier(name, field.name) if is_table else "",
                str(since(name, field.name)),
            )
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


def all_rows() -> list[type[Row]]:
    """Every row type that the package defines, told of or not."""
    return [row for row in Row.__subclasses__() if row.__module__.startswith("backprobe.record")]
