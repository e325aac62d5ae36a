"""One function per question about a run's record. Each takes the run and sees the rows of its visible attempt only.

All return frozen dataclasses whose fields are the API's JSON names; `as_json` makes plain JSON values of any of
them: the field `cls` becomes "class", non-finite numbers the strings "NaN", "Infinity", "-Infinity". A run without a
visible record gives empty answers.
"""

from store.queries.graph.backward_calls import backward_calls
from store.queries.graph.graph_answers import (
    BackwardCallRow,
    BackwardRoot,
    EdgeRow,
    Graph,
    GraphBox,
    GraphEdge,
    GraphView,
    NodeRow,
)
from store.queries.graph.graph_rows import graph
from store.queries.graph.graph_start import last_folding_call, last_walked_call, nodes_of_call
from store.queries.graph.graph_view import GraphAsked, NoSuchRoot, graph_view
from store.queries.graph.nodes import NodeFull, NodePage, PassPage, PassRow, SavedRow, node, nodes, passes
from store.queries.graph.retention_rows import HeldAfter, HeldLine, HeldRoot, load_held_graphs
from store.queries.history.curve_rows import CurveAsked, CurveRow, curve_rows
from store.queries.history.curves import Heatmap, HeatRow, Series, TooMuch, curve, heat
from store.queries.history.highest_norms import Peak, peaks, top
from store.queries.history.step_curves import StepCurves, StepRow, step_curves, step_rows, steps_at
from store.queries.history.value_series import Heat, heatmap, series, state_at, tensors_without_grad
from store.queries.json_values import as_json
from store.queries.moments import moment_named
from store.queries.rows import LISTABLE, RowPage, rows, select_rows
from store.queries.source.output_streams import attempts, events, streams
from store.queries.source.program_answers import (
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
from store.queries.source.rule_hits import FoundIn, runs_with
from store.queries.source.source_lines import source
from store.queries.tensors.one_tensor import tensor
from store.queries.tensors.snapshots import snapshots, tensor_snapshots
from store.queries.tensors.tensor_answers import (
    ArrivedRow,
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
from store.queries.tensors.tensor_filter import TensorFilter
from store.queries.tensors.tensor_json import ToldPage, tensors_told
from store.queries.tensors.tensor_pages import tensors
from store.queries.tensors.tensor_states import StateFilter, tensors_at
from store.queries.tensors.trained_tensors import select_trained_tensors

__all__ = [
    "LISTABLE",
    "ArrivedRow",
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
    "StepCurves",
    "StepRow",
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
    "curve",
    "curve_rows",
    "events",
    "graph",
    "graph_view",
    "heat",
    "heatmap",
    "last_folding_call",
    "last_walked_call",
    "load_held_graphs",
    "moment_named",
    "node",
    "nodes",
    "nodes_of_call",
    "passes",
    "peaks",
    "rows",
    "runs_with",
    "select_rows",
    "select_trained_tensors",
    "series",
    "snapshots",
    "source",
    "state_at",
    "step_curves",
    "step_rows",
    "steps_at",
    "streams",
    "tensor",
    "tensor_snapshots",
    "tensors",
    "tensors_at",
    "tensors_told",
    "tensors_without_grad",
    "top",
]
