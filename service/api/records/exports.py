"""Whole lists as NDJSON, CSV or Parquet, streamed by keyset: no transaction is open while a client is waited for.

A list of more than one batch holds a thread for as long as its client reads, so it takes one of few seats.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from flask import Response, request

from service.context import context
from service.limits.turns import aside
from service.problems.errors import Place, Problem
from service.web.table_cells import Column, columns, csv_header, csv_rows, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Batches = Callable[[], Iterator[Sequence[Any]]]

Export = Literal["ndjson", "csv", "parquet"]

MEDIA: Final[dict[str, str]] = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "sarif": "application/sarif+json",
    "junit": "application/xml",
    "github": "text/plain",
}
"""Media type of each format beside JSON."""

SCHEMAS: Final[dict[str, dict[str, str]]] = {name: {"type": "string"} for name in MEDIA} | {"sarif": {"type": "object"}}
"""What the document says of each: SARIF is JSON, all else is text or bytes."""

EXPORTS: Final = ("ndjson", "csv", "parquet")
BATCH: Final = 1000
"""Rows of one transaction, and of one row group of Parquet's."""

_encoder: Final = msgspec.json.Encoder()


def wanted_format(asked: str | None, offered: Sequence[str]) -> str:
    """Choose the format that `format=` names, else the best one that `Accept` takes; `json` if neither says.

    Raises:
        Problem: `not-acceptable`: Accept takes none of them, or Parquet is not installed.
    """
    found = asked
    if found is None:
        media = {"application/json": "json", **{MEDIA[name]: name for name in offered}}
        accepted = request.accept_mimetypes
        best = accepted.best_match(list(media), default="") if accepted else "application/json"
        if not best:
            detail = f"Accept takes none of {', '.join(media)}."
            raise Problem(
                "not-acceptable", detail, places=(Place(header="Accept", code="not-acceptable", detail=detail),)
            )
        found = media[best]
    if found == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise Problem("not-acceptable", "This server cannot write Parquet: pyarrow is not installed there.")
    return found


def vary_headers(headers: Mapping[str, str], form: str) -> dict[str, str]:
    """Build the headers of a list that Accept changes: for a cache another format is another thing."""
    told = dict(headers) | {"Vary": "Accept"}
    if form != "json" and "ETag" in told:
        told["ETag"] = f'{told["ETag"][:-1]}-{form}"'
    return told


def export(
    name: str, form: str, row: type[Any], batches: Iterable[Sequence[Any]], headers: Mapping[str, str]
) -> Response:
    """Answer with every row of the list, as it is read.

    Args:
        name: Of the file, without its ending.
        form: One of `EXPORTS`.
        row: The class that describes a row.
        batches: Rows as plain JSON values; the first batch is read now, so that an error becomes a problem.
        headers: ETag and the like.

    Raises:
        Problem: `too-many-streams`.
    """
    writers = {"ndjson": _ndjson, "csv": _csv, "parquet": _parquet}
    rest = iter(batches)
    first = next(rest, ())
    give_back = context().lists.demand() if len(first) >= BATCH else None
    sent = dict(headers) | {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    stream = writers[form](columns(row), _chain_batches(first, rest))
    if give_back is not None:
        stream = _stream_aside(stream)
    charset = "; charset=utf-8" if form == "csv" else ""
    answer = Response(stream, 200, sent, content_type=MEDIA[form] + charset)
    if give_back is not None:
        answer.call_on_close(give_back)
    return answer


def _stream_aside(stream: Iterator[bytes]) -> Iterator[bytes]:
    with aside():  # its seat bounds it
        yield from stream


def _chain_batches(first: Sequence[Any], rest: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    yield first
    yield from rest


def _ndjson(_of: Sequence[Column], batches: Iterator[Sequence[Any]]) -> Iterator[bytes]:
    for rows in batches:
        yield b"".join(_encoder.encode(row) + b"\n" for row in rows)


def _csv(of: Sequence[Column], batches: Iterator[Sequence[Any]]) -> Iterator[bytes]:
    yield csv_header(of)
    for rows in batches:
        yield csv_rows(of, rows)


class _Sink:
    """What Parquet's writer takes for a file: bytes are handed on and forgotten."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def write(self, part: Any) -> int:
        piece = bytes(part)
        self._parts.append(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def drain(self) -> bytes:
        """Return what was written since the last call, and forget it."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _parquet(of: Sequence[Column], batches: Iterator[Sequence[Any]]) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string(), "json": pa.string()}
    schema = pa.schema([(column.name, kinds[column.kind]) for column in of])
    sink = _Sink()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        for rows in batches:
            arrays = [pa.array(values(column, rows), kinds[column.kind]) for column in of]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            yield sink.drain()
    yield sink.drain()
