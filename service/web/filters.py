"""Filters that several lists have."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from service.schemas.requests import Labels
from service.web.body import LABELS
from service.web.parameters import Split

MOST_RULES: Final = 50
"""In one filter."""

Rules = Annotated[
    list[Annotated[str, Field(pattern="^[A-Za-z0-9-]{1,64}$")]], Split, Field(min_length=1, max_length=MOST_RULES)
]
"""Rules, by name or code: any of them."""

WithLabels = Annotated[Labels, Field(alias=LABELS, description="`label.NAME=VALUE`; several: all of them.")]
