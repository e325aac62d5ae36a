"""What the program asked of autograd, and its course step by step: modes, watched calls, steps, histograms, origins."""

from __future__ import annotations

from typing import Final

from store.tables.base.record_key import record_table
from store.tables.base.types import f4, f8, flag, i2, i4, i8, is_one_of, json, text

mode: Final = record_table(
    "mode",
    i4("n", "Its number, in order of time."),
    text("kind", "grad, inference, autocast, training, anomaly or deterministic."),
    text("before", "The mode before, as text."),
    text("after", "The mode since, as text."),
    text("how", "with, decorator, call or unknown."),
    text("switched_by", "torch's function or class that did; NULL: not known.", null=True),
    i2("thread", "n of record.threads."),
    i4("site", "Where; NULL: outside the user's files.", null=True),
    i4("moment", "First moment under it; NULL: none.", null=True),
    i4("until", "First moment after it; NULL: it held to the end, or has none.", null=True),
    i4("module", "Of training: whose; NULL: another kind, or not recorded.", null=True),
    text("device", "Of autocast: the device type; NULL: another kind.", null=True),
    is_one_of("kind", ("grad", "inference", "autocast", "training", "anomaly", "deterministic")),
    key=("n",),
    comment="A region of the run in which a mode of torch was another one.",
)

watched_call: Final = record_table(
    "watched_call",
    i4("n", "Its number, in order of time."),
    text("function", "torch's full name: torch.nn.functional.cross_entropy."),
    i4("moment", "First moment after it; NULL: the record ends inside it.", null=True),
    i4("site", "Where; NULL: outside the user's files.", null=True),
    i2("thread", "n of record.threads."),
    i4("module_call", "Innermost module call open then; NULL: none.", null=True),
    json("arguments", "Those that are no tensors, by parameter."),
    json("inputs", "Tensors handed in: name, tensor."),
    json("outputs", "Tensors that came back."),
    flag("raised", "It ended with an exception."),
    i4("col", "First column of the call, 1-based, in code points; NULL: not known.", null=True),
    key=("n",),
    indices=(("function",), ("site",)),
    wide=True,
    comment="A call of a function that rules ask about: losses, softmax, detach, checkpoint, ...",
)

operation: Final = record_table(
    "operation",
    i4("operation", "Its number, in the order in which they ended."),
    i4("statement", "Site of the statement in which it stands."),
    i4("line", "First line of the expression."),
    i4("col", "First column, 1-based, in code points."),
    i4("end_line", "Last line."),
    i4("end_col", "Column after the last."),
    text("function", "As written: torch.cat, .detach, *, [], self.net."),
    i2("thread", "n of record.threads."),
    i4("moment", "The last moment before its end; NULL: none yet.", null=True),
    json("operands", "Tensors that went in."),
    json("inner", "Operations whose results went in."),
    flag("complete", "Everything that went in is in operands and inner."),
    text("result", "tensor, tensors, number, array or other."),
    i4("tensor", "The tensor that came out; NULL: none, or one without a row.", null=True),
    flag("is_value", "It is the value of its statement."),
    flag("requires_grad", "Of the tensor that came out; NULL: no tensor.", null=True),
    json("shape", "Of the tensor that came out; NULL: no tensor, or none is defined.", null=True),
    text("dtype", "Of the tensor that came out; empty: no tensor."),
    is_one_of("result", ("tensor", "tensors", "number", "array", "other")),
    key=("operation",),
    indices=(("statement",),),
    wide=True,
    comment="An expression of the program: what went in, and what came out.",
)

step: Final = record_table(
    "step",
    i4("step", "Its number, from 0."),
    flag("sampled", "It was captured in full."),
    text(
        "why",
        "Why it was, or not: all, first, 1-2-5, every, anomaly, after-anomaly, loop-left, not-sampled or skipped.",
    ),
    i4("first_moment", "First moment in it; NULL: none.", null=True),
    i4("last_moment", "Last moment in it; NULL: none.", null=True),
    i4("site", "The statement that ended it; NULL: not known.", null=True),
    f8("loss", "Value of the first root of its last backward call; NULL: not known.", null=True),
    i4("loss_tensor", "That root; NULL: it has no row.", null=True),
    f8("grad_norm", "L2 norm over all gradients before the optimizer's step; NULL: not measured.", null=True),
    i4("parameters_without_grad", "Tensors of the optimizer without a gradient; NULL: not counted.", null=True),
    i4("backward_calls", "How many ended in it."),
    f8("learning_rate", "Of the first group; NULL: no optimizer.", null=True),
    i8("started_ns", "Since the start of the record."),
    i8("duration_ns", "How long it took."),
    i8("own_ns", "Of that, ours."),
    text(
        "anomaly", "non-finite, exception, gradient-stopped, warning or none-read; NULL: nothing was seen.", null=True
    ),
    i4("tensor", "The tensor with that anomaly; NULL: none in particular.", null=True),
    key=("step",),
    comment="One training step: the time series of a run.",
)

histogram: Final = record_table(
    "histogram",
    i4("tensor", "Whose elements."),
    i4("moment", "When."),
    text("of", "value, grad, or arrived: the gradient that reached it in a backward call."),
    f8("low", "Lower edge of the first bin."),
    f8("high", "Upper edge of the last bin."),
    json("counts", "Elements per bin."),
    i8("below", "Finite elements under low."),
    i8("above", "Finite elements over high."),
    i8("nonfinite", "NaN and infinities."),
    text("kind", "exact or sampled."),
    text("scale", "linear: bins of one width; log2: of absolute values, each edge a multiple of the last."),
    i8("zeros", "On a log2 scale: elements that are 0, which lie in no bin."),
    is_one_of("of", ("value", "grad", "arrived")),
    key=("tensor", "moment", "of"),
    wide=True,
    comment="How the elements of a tensor, or of its gradient, are distributed.",
)

grad_input: Final = record_table(
    "grad_input",
    i4("call", "Which backward call."),
    i4("node", "Which node."),
    i4("slot", "Place in its next_functions: to which the gradient went."),
    flag("hole", "It sent none there."),
    f4("norm", "L2 norm of the gradient that was sent; NULL: not measured or not defined.", null=True),
    f4("sum", "Its sum; NULL likewise.", null=True),
    f4("min", "Its least element; NULL likewise.", null=True),
    f4("max", "Its greatest element; NULL likewise.", null=True),
    i8("nan", "Elements that are NaN; NULL: not measured.", null=True),
    i8("inf", "Elements that are infinite; NULL: not measured.", null=True),
    i8("zeros", "Elements that are 0; NULL: not measured.", null=True),
    i8("counted", "Elements looked at; NULL: not measured.", null=True),
    text("stat_kind", "exact or sampled; NULL: not measured.", null=True),
    key=("call", "node", "slot"),
    comment="A gradient that a node sent on in one backward call.",
)

origin: Final = record_table(
    "origin",
    i4("n", "Its number."),
    text("direction", "forward, or backward: inside a backward call."),
    text("op", "The ATen op: aten.log.default."),
    text("what", "nan or inf."),
    i4("site", "The statement that ran it; NULL: outside the user's files.", null=True),
    i4("moment", "First moment after it in the first run; NULL: none.", null=True),
    i4("call", "Of backward: the call; NULL: forward, or not matched.", null=True),
    i4("tensor", "The tensor of the first run that its result is; NULL: a value inside a library.", null=True),
    text("inputs", "Shapes, dtypes and ranges of its inputs."),
    flag("diverged", "The second run did not follow the first one."),
    text("why", "What made it diverge, or why no op was found; NULL: nothing to add.", null=True),
    is_one_of("direction", ("forward", "backward")),
    key=("n",),
    wide=True,
    comment="Where the first NaN or infinity was made, by a second run.",
)
