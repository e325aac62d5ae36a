"""The record's head, and the program it is about: sites, moments, modules."""

from __future__ import annotations

from typing import Final

from store.tables.base.record_key import record_table
from store.tables.base.types import flag, i2, i4, i8, is_one_of, json, text

record: Final = record_table(
    "record",
    i4("schema_version", "Version of the format it was first written in; NULL: not even its header came.", null=True),
    text("backprobe_version", "Version that captured; NULL as schema_version.", null=True),
    text("tier", "state, grad, full or deep; NULL as schema_version.", null=True),
    text("entry", "run, watch, notebook or service; NULL as schema_version.", null=True),
    text("started_at", "UTC, ISO 8601, as the child wrote it; NULL as schema_version.", null=True),
    i8("duration_ns", "From start to end; NULL: it did not reach its end.", null=True),
    i8("own_ns", "Of that, ours; NULL: it did not reach its end.", null=True),
    i8("own_errors", "Internal errors that capture swallowed; NULL: it did not reach its end.", null=True),
    text("own_error", "Text of the first of those; NULL: none.", null=True),
    flag("reached_end", "The end frame came: the record is whole as far as its caps allow."),
    text("ending", "ended, raised or exited, in the program's own words; NULL: it did not reach its end.", null=True),
    i8("exit_code", "What the interpreter would have exited with; NULL: it did not reach its end.", null=True),
    i4("exception", "n of the uncaught exception in exceptions; NULL: none.", null=True),
    text("tap", "Which build of the taps ran: python or c; NULL as schema_version.", null=True),
    json("environment", "Versions, devices, modes and variables; NULL as schema_version.", null=True),
    json("threads", "Threads in which something was recorded."),
    json("sources", "The user's files as they were compiled."),
    json("hooks", "Hooks that the program registered."),
    json("exceptions", "Exceptions, caught ones too, with their frames."),
    json("warnings", "Warnings as the program's filters showed them."),
    json("streams", "stdout and stderr: tail and total_bytes, from the pipe; recorded: the record's own."),
    json("truncations", "What was left out, and why."),
    json("fallbacks", "Instruments that were installed in another way than planned."),
    json("deviations", "What the program could notice of being recorded."),
    json("growth", "Live nodes and held bytes after each backward call."),
    json("grad_reads", "Where the program read .grad, and whether it was None."),
    json("tensor_notes", "What is not recorded of a tensor, and why."),
    json("grad_fns", "Names of nodes; snapshot_chunk.grad_fn counts them from 1."),
    json("rules_not_run", "Rules that lacked a fact to judge it: code, name, why."),
    json(
        "gradient_checks",
        "Leaves whose gradient was compared with the derivative of the loss; NULL: stored by a version before it.",
        null=True,
    ),
    json(
        "checks",
        "The state of each invariant: name, code, state, checked, total, unit, why, findings;"
        " NULL: not judged, or judged by a version before it.",
        null=True,
    ),
    json("stacks", "Chains of calls in the user's files; NULL: stored by a version before it.", null=True),
    key=(),
    wide=True,
    comment="The head of a record, and what nobody filters by.",
)

site: Final = record_table(
    "site",
    i4("site", "Its number in the record."),
    i4("file", "Number of its file in record.sources."),
    text("path", "Of that file, relative POSIX."),
    i4("line", "First line, 1-based."),
    i4("end_line", "Last line."),
    i4("col", "First column, 1-based, in code points."),
    i4("end_col", "Column after the last."),
    text("function", "Qualified name of the enclosing function; <module> at top level."),
    i4("loop_line", "First line of the innermost enclosing loop in that function; NULL: none.", null=True),
    text("kind", "assign, return, call, inplace, for, enter, grad-read, statement or module."),
    json("targets", "Names it binds."),
    json("reads", "Names it reads."),
    key=("site",),
    indices=(("path", "line"),),
    comment="A statement or expression of the user's files.",
)

moment: Final = record_table(
    "moment",
    i4("moment", "Its number: the order in the run."),
    text("kind", "What had just happened, or was about to."),
    i4("k", "Counts the moments of its kind that carry a number; else 0."),
    i4("site", "Where; NULL: at no statement.", null=True),
    i2("thread", "n of record.threads."),
    i4("module_call", "Innermost module call open; NULL: none.", null=True),
    i4("step", "Optimizer steps finished before it."),
    i8("time_ns", "Since the start of the record."),
    flag("grad_mode", "Autograd was on."),
    flag("inference_mode", "Under inference_mode."),
    text("autocast", "dtype per device; NULL: off.", null=True),
    i4(
        "stack",
        "n of record.stacks: the calls that led to its function; NULL: none of the user's, or not recorded.",
        null=True,
    ),
    is_one_of("kind", ("after-statement", "before-backward", "after-backward", "optimizer-step", "end")),
    key=("moment",),
    indices=(("kind", "k"),),
    comment="A point in the run at which state was taken.",
)

module: Final = record_table(
    "module",
    i4("module", "Its number."),
    text("class", "Class name."),
    text("binding", "Name it was bound to, for a root module; NULL: none.", null=True),
    text("fqn", "Path below that; NULL: a root.", null=True),
    i4("site", "Where it was first seen; NULL: not known.", null=True),
    flag("user_code", "Its class is defined in the user's files."),
    flag("training", "In training mode when first seen."),
    json("parameters", "Its own: name, tensor, requires_grad."),
    json("buffers", "Its own, likewise."),
    key=("module",),
    wide=True,
    comment="An nn.Module of the program.",
)

module_call: Final = record_table(
    "module_call",
    i4("module_call", "Its number."),
    i4("module", "Whose call."),
    i4("k", "Counts the module's calls from 0."),
    i4("parent", "The call in which it was made; NULL: none.", null=True),
    i4("site", "Where it was called; NULL: not known.", null=True),
    text("chain", "Calls it was made in, outermost first: h.3.attn#0."),
    i8("lo", "Autograd sequence number at enter."),
    i8("hi", "At leave: its nodes are those in [lo, hi)."),
    i2("thread", "n of record.threads."),
    flag("training", "In training mode."),
    flag("grad_mode", "Autograd was on."),
    flag("recompute", "A checkpoint's second forward."),
    key=("module_call",),
    indices=(("chain",),),
    comment="The k-th call of a module.",
)
