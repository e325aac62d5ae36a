"""Which part of a run's page is shown: everything that a copied link restores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from service.api.records.history import Stat
from service.dashboard.lines import LINES_PER_PAGE
from service.web.body import Strict
from service.web.parameters import Cursor, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

TensorChoice = Literal["all", "parameters", "without-gradient", "non-finite"]
TENSOR_CHOICES: Final[Mapping[TensorChoice, str]] = {
    "all": "all",
    "parameters": "parameters",
    "without-gradient": "grad None, though it requires grad",
    "non-finite": "NaN or Inf seen",
}
_CHOSEN: Final[Mapping[TensorChoice, Mapping[str, Any]]] = {
    "all": {},
    "parameters": {"role": ("parameter",)},
    "without-gradient": {"grad": ("none",), "requires_grad": True},
    "non-finite": {"nonfinite_gt": 0},
}


class RunPageQuery(Strict):
    """Which part of a run's page."""

    file: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    first_line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = Field(default=None, alias="from")
    tensors: Cursor | None = None
    line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = Field(default=None, description="Selected.")
    t: Annotated[Whole, Field(ge=0, le=2**31 - 1)] | None = Field(default=None, description="Selected tensor.")
    call: Annotated[Whole, Field(ge=0, le=2**31 - 1)] | None = Field(default=None, description="Selected call.")
    open: Annotated[str, Field(max_length=1200)] | None = Field(default=None, description="Boxes that are open.")
    depth: Annotated[Whole, Field(ge=0, le=64)] | None = Field(default=None, description="Levels that are open beside.")
    focus: Annotated[str, Field(max_length=12)] | None = Field(default=None, description="The call that is seen alone.")
    n: Annotated[str, Field(max_length=40)] | None = Field(default=None, description="Selected box of the graph.")
    zoom: Annotated[str, Field(pattern=r"^[0-9.]{1,6}$")] | None = Field(default=None, description="Of the graph.")
    find: Annotated[str, Field(max_length=100)] | None = Field(default=None, description="Search of the graph.")
    boxes: Annotated[Whole, Field(ge=1, le=400)] | None = Field(default=None, description="Of the graph, at most.")
    sort: Annotated[str, Field(max_length=20)] | None = Field(default=None, description="Of the rows over steps.")
    q: Annotated[str, Field(max_length=100)] | None = Field(default=None, description="Part of a tensor's name.")
    show: TensorChoice = Field(default="all", description="Which tensors the table has.")
    stat: Stat = Field(default="grad_norm", description="Statistic of the tensors that are drawn over steps.")
    name: Annotated[str, Field(max_length=200)] | None = Field(default=None, description="Glob over their names.")
    other: Annotated[str, Field(max_length=40)] | None = Field(
        default=None, alias="with", description="Run that is drawn over this one."
    )

    @property
    def first(self) -> int:
        """The first line to show: what was asked for, else one from which the selected line is seen."""
        if self.first_line is not None:
            return self.first_line
        return 1 if self.line is None or self.line <= LINES_PER_PAGE else self.line - LINES_PER_PAGE // 2

    @property
    def tensor_filters(self) -> dict[str, Any]:
        """As `queries.tensors` takes them."""
        named = {} if self.q is None else {"name": f"*{self.q}*"}
        return {**named, **_CHOSEN[self.show]}
