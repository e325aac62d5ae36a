"""Older versions of the format: what is done so that this code can work with what they left.

A version only adds: tables, fields at the ends of rows that may be missing, words to closed lists. So the typed decoder
reads every older stream as it is, and only the header says which facts could not be in it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from backprobe.record.integrity import BadRecord
from backprobe.record.record import SCHEMA_VERSION, Header

OLDEST: Final = 1


def upgraded(header: Header) -> Header:
    """The header as this version has it.

    Raises:
        BadRecord: a newer Backprobe wrote it, or it names no version at all.
    """
    version = header.schema_version
    if not OLDEST <= version <= SCHEMA_VERSION:
        raise BadRecord(
            "unknown-version",
            f"schema version {version}; this Backprobe reads versions {OLDEST} to {SCHEMA_VERSION}"
            + (": upgrade it" if version > SCHEMA_VERSION else ""),
        )
    if version == SCHEMA_VERSION:
        return header
    return msgspec.structs.replace(header, schema_version=SCHEMA_VERSION, first_version=version)
