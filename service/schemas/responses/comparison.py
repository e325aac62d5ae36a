"""What a comparison of two runs tells."""

from __future__ import annotations

from dataclasses import dataclass

from backprobe.show.operation_comparison import PlacedOperation
from backprobe.show.run_comparison import PlacedTensor
from service.schemas.responses.findings import FindingTold


@dataclass(frozen=True, kw_only=True)
class TensorChange:
    """One tensor of both runs, and which of its facts differ; a norm by more than a thousandth."""

    a: PlacedTensor
    b: PlacedTensor
    changed: list[str]


@dataclass(frozen=True, kw_only=True)
class TensorComparison:
    """Tensors of two runs in numbers, and the first 500 of each kind: `in_a` and `in_b` have no partner."""

    aligned: int
    changed: int
    only_a: int
    only_b: int
    changes: list[TensorChange]
    in_a: list[PlacedTensor]
    in_b: list[PlacedTensor]


@dataclass(frozen=True, kw_only=True)
class OperationDifference:
    """The first place, counted from 0, at which the operations differ; null: that run has no more."""

    place: int
    a: PlacedOperation | None
    b: PlacedOperation | None


@dataclass(frozen=True, kw_only=True)
class OperationComparison:
    """The operations of two runs in numbers; `first` is null where all that were compared are equal."""

    in_a: int
    in_b: int
    compared: int
    first: OperationDifference | None


@dataclass(frozen=True, kw_only=True)
class FindingComparison:
    """Findings by fingerprint: `in_b` are those that are new, `in_a` those that are fixed."""

    new: int
    fixed: int
    same: int
    in_b: list[FindingTold]
    in_a: list[FindingTold]


@dataclass(frozen=True, kw_only=True)
class FileDiff:
    """A file that differs; `diff` is unified, null where the file is too long for one."""

    path: str
    in_a: bool
    in_b: bool
    diff: str | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is different between two runs."""

    a: str
    b: str
    findings: FindingComparison
    tensors: TensorComparison
    operations: OperationComparison
    source: list[FileDiff]
