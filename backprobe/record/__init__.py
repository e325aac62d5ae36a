"""What is left behind of a run: plain typed values and their codec."""

from backprobe.record.asked import NAMED, Hook, Mode, Passed, WatchedCall
from backprobe.record.codec import (
    MAGIC,
    MOST_FRAME_BYTES,
    FrameReader,
    batch_frames,
    dumps,
    encode,
    end_frame,
    frame_kind,
    frame_rows,
    header_frame,
    loads,
)
from backprobe.record.events import (
    Frame,
    InplaceEvent,
    LeafGrad,
    Module,
    ModuleCall,
    ModuleParameter,
    Moment,
    Raised,
    Truncation,
    Warned,
)
from backprobe.record.fields import Row
from backprobe.record.frames import split
from backprobe.record.gradient_checks import CutOff, GradientCheck
from backprobe.record.graph import BackwardCall, Edge, GradInput, Node, NodePass, Output, Retention, Root, Saved
from backprobe.record.integrity import REFERENCES, BadRecord, check
from backprobe.record.operations import Operation
from backprobe.record.optimizers import Optimizer, OptimizerEvent, OptimizerTensor
from backprobe.record.program import Environment, Site, Source, Stream, Thread
from backprobe.record.record import KEYS, SCHEMA_VERSION, TABLES, End, Header, Record, RecordBuilder
from backprobe.record.series import Growth, Histogram, Origin, Step
from backprobe.record.tensors import Binding, GradRead, Note, SmallValue, Snapshot, Statistics, Tensor, TensorNode
from backprobe.record.values import flat, itemsize, nested
from backprobe.record.versions import upgraded

__all__ = [
    "KEYS",
    "MAGIC",
    "MOST_FRAME_BYTES",
    "NAMED",
    "REFERENCES",
    "SCHEMA_VERSION",
    "TABLES",
    "BackwardCall",
    "BadRecord",
    "Binding",
    "CutOff",
    "Edge",
    "End",
    "Environment",
    "Frame",
    "FrameReader",
    "GradInput",
    "GradRead",
    "GradientCheck",
    "Growth",
    "Header",
    "Histogram",
    "Hook",
    "InplaceEvent",
    "LeafGrad",
    "Mode",
    "Module",
    "ModuleCall",
    "ModuleParameter",
    "Moment",
    "Node",
    "NodePass",
    "Note",
    "Operation",
    "Optimizer",
    "OptimizerEvent",
    "OptimizerTensor",
    "Origin",
    "Output",
    "Passed",
    "Raised",
    "Record",
    "RecordBuilder",
    "Retention",
    "Root",
    "Row",
    "Saved",
    "Site",
    "SmallValue",
    "Snapshot",
    "Source",
    "Statistics",
    "Step",
    "Stream",
    "Tensor",
    "TensorNode",
    "Thread",
    "Truncation",
    "Warned",
    "WatchedCall",
    "batch_frames",
    "check",
    "dumps",
    "encode",
    "end_frame",
    "flat",
    "frame_kind",
    "frame_rows",
    "header_frame",
    "itemsize",
    "loads",
    "nested",
    "split",
    "upgraded",
]
