"""A record with a row in every table, built by hand."""

from __future__ import annotations

import struct

from backprobe import record as r

ENVIRONMENT = r.Environment(
    python="3.11", platform="linux", torch="2.13", variables={"TORCH_X": "1"}, seeds={"cuda:0": -1}
)
HEADER = r.Header(
    schema_version=r.SCHEMA_VERSION, backprobe_version="0.1", tier="full", entry="run", started_at="now",
    environment=ENVIRONMENT, fallbacks=("one",), deviations=("two",), first_version=1,
)  # fmt: skip
END = r.End(ending="raised", exit_code=1, exception=0, own_error="none")


def full_record() -> r.Record:
    """One row or two of everything; every reference is used."""
    stats = r.Statistics(norm=1.0, sum=float("nan"), min=-1.0, max=float("inf"), counted=3)
    return r.Record(
        header=HEADER,
        end=END,
        sources=(r.Source(source=0, path="a.py", sha256="0" * 64, text="x = 1\u00e9\n"),),
        sites=(
            r.Site(site=0, source=0, line=1, col=1, end_line=1, end_col=6, kind="assign", targets=("x",)),
            r.Site(site=1, source=0, line=2, col=1, end_line=2, end_col=6, kind="grad-read", loop_line=1),
        ),
        stacks=(r.CallStack(stack=0, site=0), r.CallStack(stack=1, site=1, parent=0)),
        threads=(r.Thread(thread=0, name="Main", main=True),),
        modules=(
            r.Module(
                module=0, cls="Linear", binding="net", site=0,
                parameters=(r.ModuleParameter(name="weight", tensor=0, requires_grad=True),),
            ),
        ),
        module_calls=(
            r.ModuleCall(module_call=0, module=0, k=0, chain="net#0", site=0),
            r.ModuleCall(module_call=1, module=0, k=1, chain="net#0.net#1", parent=0, lo=1, hi=2),
        ),
        moments=(
            r.Moment(moment=0, kind="after-statement", time_ns=1, site=0, module_call=0),
            r.Moment(moment=1, kind="end", time_ns=2, autocast="cpu bfloat16", stack=1),
        ),
        tensors=(
            r.Tensor(
                tensor=0, shape=(1,), dtype="float32", device="cpu", layout="strided", cls="Tensor", numel=1,
                size_bytes=4, moment=0, site=0, died=1, storage=0,
            ),
            r.Tensor(
                tensor=3, shape=None, dtype="float32", device="cpu", layout="strided", cls="Tensor", numel=1,
                size_bytes=4, moment=0, view_of=0, role="gradient",
            ),
        ),
        nodes=(
            r.Node(
                node=0, type="AccumulateGrad", thread=0, first_seen=0, variable=0, died=1, site=0, module_call=0,
                outputs=(r.Output(shape=(1,), dtype="float32", device="cpu"),),
            ),
            r.Node(
                node=1, type="MulBackward0", thread=0, first_seen=1, seq=7, custom="Mul", custom_site=1, candidates=(0, 1),
            ),
        ),
        tensor_nodes=(r.TensorNode(tensor=0, node=1, output_nr=0, proof="seen"),),
        edges=(r.Edge(node=1, slot=0, to_node=0), r.Edge(node=1, slot=1, to_node=None)),
        saved=(r.Saved(node=1, n=0, name="self", tensor=0, size_bytes=4, shape=(1,), dtype="float32"),),
        bindings=(r.Binding(binding=0, tensor=0, name="x", site=0, moment=0, replaces=3, parents=(3,)),),
        snapshots=(
            r.Snapshot(
                tensor=0, moment=0, is_leaf=True, requires_grad=True, retains_grad=False, grad="present", grad_id=3,
                value=stats, grad_stats=r.Statistics(),
            ),
        ),
        small_values=(
            r.SmallValue(
                tensor=0, moment=0, of="arrived", dtype="float32", shape=(1,), elements=struct.pack("<f", 1.5)
            ),
        ),
        grad_reads=(r.GradRead(tensor=0, site=1, moment=0, was_none=True, use="tested"),),
        notes=(r.Note(tensor=0, moment=1, why="because"),),
        optimizers=(
            r.Optimizer(
                optimizer=0, cls="SGD", moment=0, site=0, learning_rates=(0.1,),
                tensors=(r.OptimizerTensor(tensor=0, group=0, stale=True),),
            ),
        ),
        optimizer_events=(
            r.OptimizerEvent(n=0, optimizer=0, kind="step", moment=1, site=0, unchanged=(0,)),
            r.OptimizerEvent(
                n=1, optimizer=None, kind="clip_grad_norm", moment=1, limit=1.0, norm_type=float("inf"),
                total_norm=float("nan"), learning_rates=(0.1,), found_inf=False,
            ),
        ),
        backward_calls=(
            r.BackwardCall(
                call=0, entry="Tensor.backward", thread=0, moment_before=0, moment_after=1, site=0,
                roots=(r.Root(tensor=0, name="x", shape=(1,)),), inputs=(), returned=(True, False), outcome="raised",
                exception=0, returned_grads=(stats, None),
            ),
        ),
        node_passes=(r.NodePass(call=0, node=1, position=0, freed=True, grad_output=stats),),
        leaf_grads=(r.LeafGrad(n=0, tensor=0, moment=1, kind="populate", call=0, site=0, grad_after=3),),
        inplace_events=(
            r.InplaceEvent(n=0, tensor=0, moment=1, version_before=0, version_after=1, done_by="optimizer", optimizer=0),
        ),
        grad_inputs=(
            r.GradInput(call=0, node=1, slot=0, statistics=stats), r.GradInput(call=0, node=1, slot=1, hole=True),
        ),
        retentions=(r.Retention(root=0, moment=1, state="held", call=0, site=0, holders=("x",), since_step=3),),
        growth=(r.Growth(call=0, moment=1, live_nodes=7, site=0, held_bytes=12),),
        histograms=(r.Histogram(tensor=0, moment=1, of="grad", low=-1.5, high=2.5, counts=(1, 0, 2), nonfinite=1),),
        hooks=(
            r.Hook(
                hook=0, kind="tensor", callable="clip", tensor=0, module=0, optimizer=0, path="a.py", line=1,
                callable_site=0, site=1, moment=0, removed=1, calls=2, replaced_gradient=True,
            ),
        ),
        modes=(
            r.Mode(n=0, kind="grad", before="True", after="False", how="with", switched_by="torch.no_grad", site=0,
                   moment=0, until=1, module=0, device="cpu"),
        ),
        watched_calls=(
            r.WatchedCall(
                n=0, function="torch.nn.functional.softmax", moment=1, site=0, module_call=0,
                arguments={"dim": 1, "p": 0.5, "inplace": False, "dtype": None, "mode": "'mean'"},
                inputs=(r.TensorArgument(name="input", tensor=0), r.TensorArgument(name="weight", tensor=None)), outputs=(3,),
            ),
        ),
        operations=(
            r.Operation(operation=0, statement=0, line=1, col=5, end_line=1, end_col=9, function=".detach", operands=(3,),
                        requires_grad=False, shape=(1, 2), dtype="float32", moment=1),
            r.Operation(operation=1, statement=0, line=1, col=5, end_line=2, end_col=3, function="", inner=(0,),
                        complete=False, result="number", is_value=True, tensor=0),
        ),
        steps=(
            r.Step(step=0, sampled=True, why="first", first_moment=0, last_moment=1, site=0, loss=float("nan"),
                   loss_tensor=0, grad_norm=float("inf"), learning_rate=0.1),
        ),
        origins=(
            r.Origin(n=0, direction="forward", op="aten.log.default", what="nan", site=0, moment=0, call=0, tensor=0),
        ),
        gradient_checks=(
            r.GradientCheck(
                n=0, tensor=0, tensors=(0, 3), step=1, optimizer=0, moment=1, verdict="cut", numeric=0.5,
                numeric_wide=0.25, frozen=0.0, arrived=0.125, used=-1.5, tolerance=1e-6, factor=2.0, precision="float64",
                explained_by="a cut", cause="cut", site=0, function="Cube", cuts=(r.CutOff(function="detach", site=0),),
            ),
            r.GradientCheck(n=1, tensor=None, why="no"),
        ),
        streams=(r.Stream(name="stderr", tail="boom", total_bytes=4), r.Stream(name="stdout", tail="", total_bytes=0)),
        raised=(
            r.Raised(
                n=0, type="RuntimeError", message="no", site=0, moment=1, call=0, facts={"op": "Mul"}, family="inplace", node=1,
                frames=(r.Frame(path="a.py", line=1, function="<module>", user=True),),
            ),
        ),
        warned=(r.Warned(n=0, category="UserWarning", message="w", path="a.py", line=1, site=0, moment=0),),
        truncations=(r.Truncation(n=0, what="tensors", why="cap", limit=1, seen=2, kept=1, moment=0),),
    )  # fmt: skip
