"""Tensors with their last state, their names, their small values, and the events that changed them."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from backprobe.record import state_flags
from store.tables.base.record_key import key_columns, record_table
from store.tables.base.types import blob, f4, f8, flag, i4, i8, is_one_of, json, text

tensor: Final = record_table(
    "tensor",
    i4("tensor", "Its number: the identity through the run."),
    text("name", "The last name it was bound to; NULL: it never had one.", null=True),
    text("fqn", "state_dict key with the module's name in front; NULL: none.", null=True),
    text("role", "parameter, buffer or optimizer-only; NULL: none of them.", null=True),
    json("shape", "Sizes; NULL: strided nested, it has none.", null=True),
    json("stride", "In elements; NULL: torch defines none.", null=True),
    i8("storage_offset", "In elements; NULL: torch defines none.", null=True),
    text("dtype", "torch.float32, ..."),
    text("layout", "torch.strided, ..."),
    text("device", "cpu, cuda:0, ..."),
    text("class", "Tensor, Parameter or the subclass."),
    text(
        "special", "Why statistics or elements may be missing: sparse-coo, fake, ...; NULL: nothing special.", null=True
    ),
    i8("numel", "Elements."),
    i8("size_bytes", "numel x element size."),
    i4("storage", "Tensors with the same number share memory; NULL: sparse, mkldnn.", null=True),
    i8("storage_bytes", "Of that memory; NULL as storage.", null=True),
    i4("view_of", "The tensor that is its _base; NULL: no view.", null=True),
    text("created_by", "op, user, library or unknown."),
    text("created_how", "The node's name, or the call in the statement."),
    text("proof", "How that is known: seen, range, source, unknown."),
    i4("site", "Where it was first seen; NULL: at no statement.", null=True),
    i4("line", "First line of that site; NULL as site.", null=True),
    i4("moment", "When it was first seen."),
    i4("node", "The node whose output it is; NULL: none, or not walked.", null=True),
    i4("output_nr", "Which output; NULL as node.", null=True),
    text("node_proof", "How node is known; NULL as node.", null=True),
    i4("died", "First moment at which it was gone; NULL: alive at the end, or not known.", null=True),
    i4("last_moment", "Of its last snapshot, whose state follows; NULL: it has none.", null=True),
    *(flag(name, "Last state; NULL: no snapshot.", null=True) for name in state_flags.NAMES),
    text("grad_fn", "Last state: name of its node; NULL: none, or not read.", null=True),
    i4("version", "Last state: _version; NULL: not known.", null=True),
    text("grad", "Last state: none, present, or not-read (torch would warn); NULL: no snapshot.", null=True),
    text("why_none", "Verdict: why it has no gradient; NULL: it has one, or nobody judged.", null=True),
    text("why_text", "The verdict in a sentence; NULL as why_none.", null=True),
    i4("why_site", "The statement that decided it; NULL: none did.", null=True),
    i4("why_line", "First line of that statement; NULL: none did.", null=True),
    i4("why_call", "The backward call that decided it; NULL: none did.", null=True),
    f4("grad_norm", "Last one measured; NULL: never.", null=True),
    f4("value_norm", "Last one measured; NULL: never.", null=True),
    i8("nonfinite", "Most NaN and infinities seen at once in it and its gradient."),
    flag("grad_ever", "A snapshot saw a gradient."),
    i8("held_bytes", "What the graph behind it held for backward when last looked at."),
    is_one_of("grad", ("none", "present", "not-read")),
    key=("tensor",),
    indices=(("line", "tensor"), ("name",)),
    wide=True,
    comment="One tensor of a run, and its last state: what a person asks first.",
)
sa.Index("tensor_grad_norm", *key_columns(tensor), tensor.c.grad_norm.desc())
_ungraded: Final = sa.text("requires_grad and grad <> 'present'")
sa.Index(
    "tensor_without_grad",
    *key_columns(tensor),
    tensor.c.tensor,
    postgresql_where=_ungraded,
    sqlite_where=_ungraded,
)

binding: Final = record_table(
    "binding",
    i4("binding", "Its number, in order of time."),
    i4("tensor", "What the name came to hold."),
    text("name", "As written: x, self.h, losses[-1]."),
    i4("site", "Where."),
    i4("moment", "When."),
    text("function", "In which function; <module> at top level."),
    i4("version", "_version then; NULL: inference mode.", null=True),
    i4("replaces", "Tensor that the name held before in this function; NULL: none.", null=True),
    json("parents", "Tensors it was computed from."),
    key=("binding",),
    indices=(("tensor",), ("name",)),
    comment="A name that came to hold a tensor.",
)

small_value: Final = record_table(
    "small_value",
    i4("tensor", "Whose elements."),
    i4("moment", "When."),
    text("of", "value, grad, or arrived: the gradient that reached it in a backward call."),
    text("dtype", "Of the elements, without torch. in front."),
    json("shape", "Of the elements."),
    blob("elements", "At most 64, little-endian, row-major."),
    is_one_of("of", ("value", "grad", "arrived")),
    key=("tensor", "moment", "of"),
    comment="The elements of a tensor of at most 64, or of its gradient.",
)

leaf_grad: Final = record_table(
    "leaf_grad",
    i4("n", "Its number, in order of time."),
    i4("tensor", "Whose .grad."),
    i4("call", "In which backward call; NULL: outside any.", null=True),
    i4("moment", "When."),
    text("kind", "populate, accumulate, accumulate-new-tensor, modified-in-place, assigned, set-none, untouched."),
    i4("grad_before", "Identity of .grad before; NULL: None.", null=True),
    i4("grad_after", "Identity of .grad after; NULL: None.", null=True),
    i4("version_before", "_version of .grad before; NULL: None.", null=True),
    i4("version_after", "_version of .grad after; NULL: None.", null=True),
    i4("site", "Where; NULL: at no statement.", null=True),
    key=("n",),
    indices=(("tensor", "moment"),),
    comment="A change of one leaf's .grad.",
)

inplace_event: Final = record_table(
    "inplace_event",
    i4("n", "Its number, in order of time."),
    i4("tensor", "Which tensor."),
    i4("site", "Which statement changed it; NULL: not known.", null=True),
    i4("moment", "When."),
    i4("version_before", "_version before."),
    i4("version_after", "_version after."),
    text("done_by", "statement, optimizer, backward or unknown."),
    i4("optimizer", "Which optimizer; NULL: none.", null=True),
    is_one_of("done_by", ("statement", "optimizer", "backward", "unknown")),
    key=("n",),
    indices=(("tensor",),),
    comment="A change in place: a tensor's _version rose.",
)

optimizer: Final = record_table(
    "optimizer",
    i4("optimizer", "Its number."),
    text("class", "Class name."),
    text("binding", "Name it was bound to; NULL: none.", null=True),
    i4("site", "Where it was made; NULL: not known.", null=True),
    i4("moment", "When it was first seen."),
    json("groups", "Its parameter groups: learning_rate."),
    json("tensors", "The tensors in them: tensor, group, stale, non_leaf, foreign, duplicated."),
    key=("optimizer",),
    wide=True,
    comment="A torch.optim.Optimizer.",
)

optimizer_event: Final = record_table(
    "optimizer_event",
    i4("n", "Its number, in order of time."),
    i4("optimizer", "Whose; NULL: clipping and scaling that name none.", null=True),
    text("kind", "step, zero_grad, clip_grad_norm, scheduler_step, scaler_update, ..."),
    i4("site", "Where; NULL: not known.", null=True),
    i4("moment", "When."),
    flag("set_to_none", "Of zero_grad; NULL: another kind.", null=True),
    i4("with_grad", "Tensors that had a gradient."),
    i4("without_grad", "Tensors that had none."),
    i4("changed", "Tensors whose version rose."),
    f8("scale", "Of a gradient scaler: its factor after it; NULL: none, or not read.", null=True),
    f8("scale_before", "Of a gradient scaler: its factor before; NULL: none, or not read.", null=True),
    flag("found_inf", "Of a gradient scaler: a gradient was not finite; NULL: another kind, or not read.", null=True),
    flag("skipped", "Of scaler_step: it left the optimizer's step out; NULL: another kind.", null=True),
    text("class", "Of the scheduler or scaler; NULL: another kind.", null=True),
    f8("clip_limit", "Of clipping: the greatest norm or value allowed; NULL: another kind.", null=True),
    f8("norm_type", "Of clip_grad_norm: the order of the norm; NULL: another kind.", null=True),
    f8("total_norm", "Of clip_grad_norm: the norm before; NULL: another kind, or not read.", null=True),
    json("learning_rates", "After it, by group; empty: not read; NULL: of a record of version 1.", null=True),
    json(
        "unchanged",
        "Of a step: tensors with a gradient whose values it left as they were; NULL: another kind, or not compared.",
        null=True,
    ),
    is_one_of(
        "kind",
        (
            "step",
            "zero_grad",
            "clip_grad_norm",
            "clip_grad_value",
            "scheduler_step",
            "scaler_scale",
            "scaler_unscale",
            "scaler_step",
            "scaler_update",
            "add_param_group",
            "load_state_dict",
        ),
    ),
    key=("n",),
    comment="A step of an optimizer, or what belongs to one: zero_grad, clipping, scheduler, gradient scaler.",
)
