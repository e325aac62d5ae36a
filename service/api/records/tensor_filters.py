"""Which tensors: the parameters of the lists of tensors and snapshots."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from backprobe.record.rows.events import MomentKind
from backprobe.record.rows.tensors import Grad
from backprobe.record.state_flags import NAMES
from service.api.records.moments import At
from service.problems.errors import Place, Problem
from service.web.parameters import Flag, Measure, Page, Split, Whole
from store import queries

_ANY_OF: Final = "Any of these, joined by commas."

Moment = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
Line = Annotated[Whole, Field(ge=1, le=2**31 - 1)]
Amount = Annotated[Whole, Field(ge=0, le=2**53)]
Kinds = Annotated[list[MomentKind], Split, Field(min_length=1, max_length=5)]


class ExportQuery(Page):
    """A page of a list, or all of it in another format."""

    format: Literal["json", "ndjson", "csv", "parquet"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too. All but json answer with the whole list."
    )


class TensorFilters(ExportQuery):
    """Which tensors, by their last state."""

    is_leaf: Flag | None = None
    requires_grad: Flag | None = None
    retains_grad: Flag | None = None
    grad_ever: Flag | None = Field(default=None, description="It had a gradient at some moment.")
    role: (
        Annotated[list[Literal["parameter", "buffer", "optimizer-only"]], Split, Field(min_length=1, max_length=3)]
        | None
    ) = Field(default=None, description=_ANY_OF)
    grad: Annotated[list[Grad], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    why: (
        Annotated[list[Annotated[str, Field(pattern="^[a-z-]{1,40}$")]], Split, Field(min_length=1, max_length=20)]
        | None
    ) = Field(default=None, description=f"Verdicts of why_none. {_ANY_OF}")
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Glob over every name that the tensor had: `h.*.weight`."
    )
    fqn: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Glob over its name in the model: `h.*.weight`."
    )
    line: Line | None = Field(default=None, description="First seen there.")
    path: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    nonfinite_gt: Amount | None = Field(default=None, alias="nonfinite.gt", description="NaN and Inf ever seen.")
    grad_norm_gt: Measure | None = Field(
        default=None, alias="grad_norm.gt", description="The last one measured; NaN is more than any number."
    )
    value_norm_gt: Measure | None = Field(default=None, alias="value_norm.gt", description="Likewise.")
    held_bytes_gt: Amount | None = Field(default=None, alias="held_bytes.gt", description="Of the graph behind it.")

    def tensors(self) -> dict[str, Any]:
        """Return the fields of `TensorFilter` that were given."""
        return {name: value for name in FILTERS if (value := getattr(self, name)) is not None}


FILTERS: Final = (
    *NAMES, "grad_ever", "role", "grad", "why", "name", "fqn", "line", "path",
    "nonfinite_gt", "grad_norm_gt", "value_norm_gt", "held_bytes_gt",
)  # fmt: skip


STATES: Final = (*NAMES, "grad", "grad_norm_gt", "value_norm_gt")
"""Of those: what a snapshot says."""


class TensorsQuery(TensorFilters):
    """Which tensors, and in which order."""

    sort: Literal["tensor", "name", "line", "-grad_norm", "-held_bytes"] = Field(
        default="tensor", description="`-`: the greatest first. What has none comes last."
    )
    at: At | None = Field(
        default=None,
        description="As they were at a moment, by its number or as `after-backward:0`: state, norms and `nonfinite` are"
        " those of the last snapshot by then, and filters look at them. By number only; not with `why`, `grad_ever`,"
        " `nonfinite.gt` and `held_bytes.gt`, which speak of the whole run.",
    )

    def then(self) -> queries.StateFilter:
        """Which ones, by their state at the moment `at`."""
        given = {name: value for name in STATES if (value := getattr(self, name)) is not None}
        return queries.StateFilter(**given)

    def fields_without_state(self) -> dict[str, Any]:
        """Return the fields of `TensorFilter` that do not depend on a state.

        Raises:
            Problem: one was given that cannot go with `at`.
        """
        wrong = [
            name for name in ("why", "grad_ever", "nonfinite_gt", "held_bytes_gt") if getattr(self, name) is not None
        ]
        wrong += ["sort"] if self.sort != "tensor" else []
        if wrong:
            name = type(self).model_fields[wrong[0]].alias or wrong[0]
            detail = f"{name} does not go with `at`: it speaks of the whole run, or orders by it."
            place = Place(parameter=name, code="not-with-at", detail=detail)
            raise Problem("invalid-request", detail, places=(place,))
        return {name: value for name, value in self.tensors().items() if name not in STATES}
