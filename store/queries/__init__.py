"""One function per question about a run's record. Each takes the run and sees the rows of its visible attempt only.

All return frozen dataclasses whose fields are the API's JSON names; `as_json` makes plain JSON values of any of
them: the field `cls` becomes "class", non-finite numbers the strings "NaN", "Infinity", "-Infinity". A run without a
visible record gives empty answers.
"""

from store.queries.as_json import as_json
from store.queries.calls import backward_calls
from store.queries.graph import graph
from store.queries.graph_answers import BackwardCallRow, BackwardRoot, EdgeRow, Graph, NodeRow
from store.queries.one_tensor import tensor
from store.queries.program_answers import (
    AttemptRow,
    EventRow,
    ExceptionRow,
    LineBinding,
    SourceFile,
    SourceLine,
    StreamRow,
    Streams,
    WarningRow,
)
from store.queries.rows import LISTABLE, RowPage, rows
from store.queries.snapshots import snapshots, tensor_snapshots
from store.queries.source import source
from store.queries.streams import attempts, events, streams
from store.queries.tensor_answers import (
    BindingRow,
    HolderRow,
    InplaceRow,
    SavedByRow,
    SmallValueRow,
    SnapshotPage,
    SnapshotRow,
    StatisticsRow,
    TensorCreated,
    TensorFull,
    TensorPage,
    TensorRow,
    TensorState,
    WhyNoneRow,
)
from store.queries.tensors import tensors

__all__ = [
    "LISTABLE",
    "AttemptRow",
    "BackwardCallRow",
    "BackwardRoot",
    "BindingRow",
    "EdgeRow",
    "EventRow",
    "ExceptionRow",
    "Graph",
    "HolderRow",
    "InplaceRow",
    "LineBinding",
    "NodeRow",
    "RowPage",
    "SavedByRow",
    "SmallValueRow",
    "SnapshotPage",
    "SnapshotRow",
    "SourceFile",
    "SourceLine",
    "StatisticsRow",
    "StreamRow",
    "Streams",
    "TensorCreated",
    "TensorFull",
    "TensorPage",
    "TensorRow",
    "TensorState",
    "WarningRow",
    "WhyNoneRow",
    "as_json",
    "attempts",
    "backward_calls",
    "events",
    "graph",
    "rows",
    "snapshots",
    "source",
    "streams",
    "tensor",
    "tensor_snapshots",
    "tensors",
]
