"""Filters that several lists have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.schemas.requests import Labels
from service.web.body import LABELS
from service.web.parameters import Split

Rules = Annotated[
    list[Annotated[str, Field(pattern="^[A-Za-z0-9-]{1,64}$")]], Split, Field(min_length=1, max_length=50)
]
"""Rules, by name or code: any of them."""

WithLabels = Annotated[Labels, Field(alias=LABELS, description="`label.NAME=VALUE`; several: all of them.")]
