"""What is left behind of a run: plain typed values and their codec."""

from backprobe.record.codec import FrameReader, batch_frames, dumps, encode, end_frame, header_frame, loads
from backprobe.record.events import (
    Frame,
    InplaceEvent,
    LeafGrad,
    Module,
    ModuleCall,
    ModuleParameter,
    Moment,
    Optimizer,
    OptimizerEvent,
    OptimizerTensor,
    Raised,
    Truncation,
    Warned,
)
from backprobe.record.fields import Row
from backprobe.record.graph import BackwardCall, Edge, Node, NodePass, Output, Retention, Root, Saved
from backprobe.record.integrity import REFERENCES, BadRecord, check
from backprobe.record.program import Environment, Site, Source, Thread
from backprobe.record.record import KEYS, SCHEMA_VERSION, TABLES, End, Header, Record, RecordBuilder
from backprobe.record.tensors import Binding, GradRead, Note, SmallValue, Snapshot, Statistics, Tensor, TensorNode
from backprobe.record.values import flat, itemsize, nested

__all__ = [
    "KEYS", "REFERENCES", "SCHEMA_VERSION", "TABLES", "BackwardCall", "BadRecord", "Binding", "Edge", "End",
    "Environment", "Frame", "FrameReader", "GradRead", "Header", "InplaceEvent", "LeafGrad", "Module", "ModuleCall",
    "ModuleParameter", "Moment", "Node", "NodePass", "Note", "Optimizer", "OptimizerEvent", "OptimizerTensor", "Output",
    "Raised", "Record", "RecordBuilder", "Retention", "Root", "Row", "Saved", "Site", "SmallValue", "Snapshot",
    "Source", "Statistics", "Tensor", "TensorNode", "Thread", "Truncation", "Warned", "batch_frames", "check", "dumps",
    "encode", "end_frame", "flat", "header_frame", "itemsize", "loads", "nested",
]
