"""Draft 2020-12 of JSON Schema, imported on first use.

jsonschema takes a second to import where its optional checkers of IRIs are installed, and every test process imports
every file of tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def validator(schema: Any) -> Draft202012Validator:
    """What says whether a value keeps to this schema, and where it does not."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema)
