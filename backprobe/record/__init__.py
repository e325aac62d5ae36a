"""What is left behind of a run: plain typed values and their codec."""

from backprobe.record.encoding.codec import (
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
from backprobe.record.encoding.frames import split
from backprobe.record.encoding.versions import upgrade_header
from backprobe.record.integrity import REFERENCES, BadRecord, check
from backprobe.record.record import KEYS, SCHEMA_VERSION, TABLES, End, Header, Record, RecordBuilder
from backprobe.record.rows.events import (
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
from backprobe.record.rows.fields import Row
from backprobe.record.rows.gradient_checks import CutOff, GradientCheck
from backprobe.record.rows.graph import BackwardCall, Edge, GradInput, Node, NodePass, Output, Retention, Root, Saved
from backprobe.record.rows.interventions import NAMED, Hook, Mode, TensorArgument, WatchedCall
from backprobe.record.rows.operations import Operation
from backprobe.record.rows.optimizers import Optimizer, OptimizerEvent, OptimizerTensor
from backprobe.record.rows.program import CallStack, Environment, Site, Source, Stream, Thread
from backprobe.record.rows.series import Growth, Histogram, Origin, Step
from backprobe.record.rows.tensors import Binding, GradRead, Note, SmallValue, Snapshot, Statistics, Tensor, TensorNode
from backprobe.record.rows.values import flat, itemsize, nest_elements

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
    "CallStack",
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
    "TensorArgument",
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
    "nest_elements",
    "split",
    "upgrade_header",
]
