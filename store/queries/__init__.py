"""One function per question about a run's record. Each takes the run and sees the rows of its visible attempt only.

All return frozen dataclasses whose fields are the API's JSON names; `as_json` makes plain JSON values of any of
them: the field `cls` becomes "class", non-finite numbers the strings "NaN", "Infinity", "-Infinity". A run without a
visible record gives empty answers.
"""

from store.queries.as_json import as_json
from store.queries.calls import backward_calls
from store.queries.curve_rows import CurveAsked, CurveRow, curve_rows
from store.queries.curves import Heatmap, HeatRow, Series, TooMuch, curve, heat
from store.queries.found import FoundIn, runs_with
from store.queries.graph import graph
from store.queries.graph_answers import (
    BackwardCallRow,
    BackwardRoot,
    EdgeRow,
    Graph,
    GraphBox,
    GraphEdge,
    GraphView,
    NodeRow,
)
from store.queries.graph_start import last_folding_call
from store.queries.graph_view import GraphAsked, NoSuchRoot, graph_view
from store.queries.highest import Peak, peaks, top
from store.queries.history import Heat, heatmap, series, state_at, tensors_without_grad
from store.queries.moments import moment_named
from store.queries.nodes import NodeFull, NodePage, PassPage, PassRow, SavedRow, node, nodes, passes
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
from store.queries.retained import HeldAfter, HeldLine, HeldRoot, held
from store.queries.rows import LISTABLE, RowPage, chosen, rows
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
from store.queries.tensor_filter import TensorFilter
from store.queries.tensors import tensors
from store.queries.tensors_at import StateFilter, tensors_at
from store.queries.tensors_told import ToldPage, tensors_told
from store.queries.trained import trained

__all__ = [
    "LISTABLE",
    "AttemptRow",
    "BackwardCallRow",
    "BackwardRoot",
    "BindingRow",
    "CurveAsked",
    "CurveRow",
    "EdgeRow",
    "EventRow",
    "ExceptionRow",
    "FoundIn",
    "Graph",
    "GraphAsked",
    "GraphBox",
    "GraphEdge",
    "GraphView",
    "Heat",
    "HeatRow",
    "Heatmap",
    "HeldAfter",
    "HeldLine",
    "HeldRoot",
    "HolderRow",
    "InplaceRow",
    "LineBinding",
    "NoSuchRoot",
    "NodeFull",
    "NodePage",
    "NodeRow",
    "PassPage",
    "PassRow",
    "Peak",
    "RowPage",
    "SavedByRow",
    "SavedRow",
    "Series",
    "SmallValueRow",
    "SnapshotPage",
    "SnapshotRow",
    "SourceFile",
    "SourceLine",
    "StateFilter",
    "StatisticsRow",
    "StreamRow",
    "Streams",
    "TensorCreated",
    "TensorFilter",
    "TensorFull",
    "TensorPage",
    "TensorRow",
    "TensorState",
    "ToldPage",
    "TooMuch",
    "WarningRow",
    "WhyNoneRow",
    "as_json",
    "attempts",
    "backward_calls",
    "chosen",
    "curve",
    "curve_rows",
    "events",
    "graph",
    "graph_view",
    "heat",
    "heatmap",
    "held",
    "last_folding_call",
    "moment_named",
    "node",
    "nodes",
    "passes",
    "peaks",
    "rows",
    "runs_with",
    "series",
    "snapshots",
    "source",
    "state_at",
    "streams",
    "tensor",
    "tensor_snapshots",
    "tensors",
    "tensors_at",
    "tensors_told",
    "tensors_without_grad",
    "top",
    "trained",
]
