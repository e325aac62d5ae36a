"""What happened and when: moments, leaf gradients, in-place changes, modules, optimizers, exceptions, warnings."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.fields import Count, Id, Int, Line, Name, Nanoseconds, Path, Row, Text


class Moment(Row, frozen=True, kw_only=True):
    """A point in the run at which state is taken.

    Attributes:
        k: Counts the moments of its kind that carry a number: backward call, optimizer step; 0 otherwise.
        step: Optimizer steps finished before it. time_ns: since the start of the record.
        autocast: dtype per device as text, None if off.
    """

    moment: Id
    kind: Literal["after-statement", "before-backward", "after-backward", "optimizer-step", "end"]
    time_ns: Nanoseconds
    k: Count = 0
    site: Id | None = None
    thread: Id = 0
    module_call: Id | None = None
    step: Count = 0
    grad_mode: bool = True
    inference_mode: bool = False
    autocast: Name | None = None


class LeafGrad(Row, frozen=True, kw_only=True):
    """A change of one leaf's `.grad`.

    Attributes:
        call: The backward call in which it happened; None outside any.
        kind: populate (None -> tensor), accumulate (same tensor, version up, in a pass), accumulate-new-tensor (in a
            create_graph pass), modified-in-place, assigned, set-none, untouched.
    """

    n: Id
    tensor: Id
    moment: Id
    kind: Literal[
        "populate", "accumulate", "accumulate-new-tensor", "modified-in-place", "assigned", "set-none", "untouched"
    ]
    call: Id | None = None
    site: Id | None = None
    grad_before: Id | None = None
    grad_after: Id | None = None
    version_before: Count | None = None
    version_after: Count | None = None


class InplaceEvent(Row, frozen=True, kw_only=True):
    """A tensor's elements changed in place: who did it, at which statement.

    Attributes:
        version_before, version_after: `_version`; equal if it did not rise, as after a write through `.data`.
        done_by: "backward" is a gradient, bound to a name, that a backward call accumulated into.
    """

    n: Id
    tensor: Id
    moment: Id
    version_before: Count
    version_after: Count
    done_by: Literal["statement", "optimizer", "backward", "unknown"] = "statement"
    site: Id | None = None
    optimizer: Id | None = None


class ModuleParameter(Row, frozen=True, kw_only=True):
    """A parameter or buffer of a module, by its name in that module."""

    name: Name
    tensor: Id | None
    requires_grad: bool = False


class Module(Row, frozen=True, kw_only=True):
    """An `nn.Module` of the program.

    Attributes:
        binding: The name it was bound to, for a root module. fqn: its path below that, `model.0`.
        user_code: Its class is defined in the user's files.
        parameters, buffers: Its own (not its children's), with the record's tensors.
    """

    module: Id
    cls: Name
    binding: Name | None = None
    fqn: Name | None = None
    site: Id | None = None
    user_code: bool = False
    training: bool = True
    parameters: Annotated[tuple[ModuleParameter, ...], msgspec.Meta(max_length=65536)] = ()
    buffers: Annotated[tuple[ModuleParameter, ...], msgspec.Meta(max_length=65536)] = ()


class ModuleCall(Row, frozen=True, kw_only=True):
    """The k-th call of a module.

    Attributes:
        chain: The calls it was made in, outermost first: `model#0.0#0`.
        lo, hi: Autograd sequence numbers at enter and leave: its nodes are those in [lo, hi).
    """

    module_call: Id
    module: Id
    k: Count
    chain: Text
    parent: Id | None = None
    site: Id | None = None
    lo: Count = 0
    hi: Count = 0
    thread: Id = 0
    training: bool = True
    grad_mode: bool = True
    recompute: bool = False


class OptimizerTensor(Row, frozen=True, kw_only=True):
    """A tensor in an optimizer's groups.

    Attributes:
        stale: Its module holds another tensor by that name now. non_leaf: not a leaf. foreign: of no known module.
    """

    tensor: Id
    group: Count
    stale: bool = False
    non_leaf: bool = False
    foreign: bool = False
    duplicated: bool = False


class Optimizer(Row, frozen=True, kw_only=True):
    """A `torch.optim.Optimizer`, with its groups as they stood at its construction or last change."""

    optimizer: Id
    cls: Name
    moment: Id
    binding: Name | None = None
    site: Id | None = None
    learning_rates: Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)] = ()
    tensors: Annotated[tuple[OptimizerTensor, ...], msgspec.Meta(max_length=65536)] = ()


class OptimizerEvent(Row, frozen=True, kw_only=True):
    """A step of an optimizer, or what belongs to one: zero_grad, clipping, a scheduler's step, a gradient scaler.

    Attributes:
        n: Its number, in order of time.
        optimizer: Whose. None: clipping and scaling that name none.
        kind: step, zero_grad, clip_grad_norm, clip_grad_value, scheduler_step, scaler_scale, scaler_unscale,
            scaler_step, scaler_update, add_param_group, load_state_dict.
        moment: When.
        site: The statement. None: not known.
        set_to_none: Of zero_grad, as it took effect. None: another kind.
        with_grad: Its tensors, or the clipped ones, that had a gradient.
        without_grad: Those that had none.
        changed: Tensors whose version rose in it.
        cls: Class of the scheduler or scaler. None: another kind.
        limit: Of clipping: the greatest norm or value allowed, in the gradients' unit. None: another kind.
        norm_type: Of clip_grad_norm: the order of the norm. None: another kind.
        total_norm: Of clip_grad_norm: the norm before clipping. None: another kind, or not read.
        scale_before: Of a scaler: its factor before. None: another kind, or not read.
        scale_after: Of a scaler: its factor after. None: another kind, or not read.
        found_inf: Of scaler_unscale, scaler_step, scaler_update: a gradient was not finite. None: another, or not read.
        skipped: Of scaler_step: it did not call the optimizer's step. None: another kind.
        learning_rates: After it, by group; empty: not read.
    """

    n: Id
    optimizer: Id | None
    kind: Literal[
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
    ]
    moment: Id
    site: Id | None = None
    set_to_none: bool | None = None
    with_grad: Count = 0
    without_grad: Count = 0
    changed: Count = 0
    cls: Name | None = None
    limit: float | None = None
    norm_type: float | None = None
    total_norm: float | None = None
    scale_before: float | None = None
    scale_after: float | None = None
    found_inf: bool | None = None
    skipped: bool | None = None
    learning_rates: Annotated[tuple[float, ...], msgspec.Meta(max_length=4096)] = ()


class Frame(Row, frozen=True, kw_only=True):
    """One frame of a traceback, innermost last; `user` if it lies in the user's files."""

    path: Path
    line: Line
    function: Name
    user: bool = False


class Raised(Row, frozen=True, kw_only=True):
    """An exception: uncaught, or one that left a backward call and was caught by the program.

    Attributes:
        message: Exact text, cut at 8192 characters.
        site: The user statement that it surfaced at.
        call: The backward call in progress.
        facts: What torch says about an in-place error and the like: "op", "output", "version", "expected_version".
        family: Which of torch's known errors it is, as a kebab-case word. None: none that we know.
        node: The node that was running or is named. None: not known.
    """

    n: Id
    type: Name
    message: Text
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=60)] = ()
    site: Id | None = None
    moment: Id | None = None
    call: Id | None = None
    caught: bool = False
    facts: dict[Name, Text] = msgspec.field(default_factory=dict[Name, Text])
    family: Name | None = None
    node: Id | None = None


class Warned(Row, frozen=True, kw_only=True):
    """A warning as the program's own filters showed it: category, exact text, and the place it points at.

    Attributes:
        moment: When it was first shown. count: how often. family: as of `Raised`.
    """

    n: Id
    category: Name
    message: Text
    path: Path
    line: Int
    site: Id | None = None
    moment: Id | None = None
    count: Count = 1
    family: Name | None = None


class Truncation(Row, frozen=True, kw_only=True):
    """A cap that bit, or a part that was skipped: nothing is left out silently."""

    n: Id
    what: Name
    why: Text
    limit: Count = 0
    seen: Count = 0
    kept: Count = 0
    moment: Id | None = None
