"""What the program asked of autograd: hooks it registered, modes it switched, calls of functions that rules watch."""

from typing import Annotated, Final, Literal

import msgspec

from backprobe.record.rows.fields import Count, Finite, Id, Ids, Int, Line, Name, Path, Row, Text

HookKind = Literal[
    "tensor",
    "post-accumulate",
    "module-forward-pre",
    "module-forward",
    "module-backward-pre",
    "module-backward",
    "module-state",
    "global-module",
    "optimizer",
    "saved-tensors",
    "node",
    "graph",
    "other",
]

Plain = bool | Int | Finite | Text | None
"""An argument that is no tensor: a finite number, a truth value or None as it is, anything else as Python writes it."""


class Hook(Row, frozen=True, kw_only=True):
    """A hook that the program registered.

    Attributes:
        hook: Its number, in order of registration.
        kind: What it is called for: tensor (`register_hook`), post-accumulate, module-forward-pre, module-forward,
            module-backward-pre, module-backward, module-state (state_dict), global-module, optimizer, saved-tensors
            (pack and unpack), node (`Node.register_hook`), graph (`register_multi_grad_hook`), other.
        callable: Qualified name of what is called: `clip`, `Trainer.<lambda>`.
        tensor: The tensor it is on. None: it is on something else.
        module: The module it is on. None: it is on something else, or on every module.
        optimizer: The optimizer it is on. None: it is on something else.
        path: The file in which the callable is defined, relative to the project. None: not written in Python.
        line: First line of the callable's definition. None: as path.
        callable_site: The site of that definition. None: not in the user's files.
        site: The statement that registered it. None: not known.
        moment: The first moment after its registration. None: the record ends before it.
        removed: The first moment at which it was gone. None: it was there at the end, or that is not known.
        calls: How often it ran. None: not counted.
        replaced_gradient: It returned another gradient than it got, at least once. None: not known.
        removable: It was registered through a handle that the program kept, so that it can be taken off. None: unknown.
    """

    hook: Id
    kind: HookKind
    callable: Name
    tensor: Id | None = None
    module: Id | None = None
    optimizer: Id | None = None
    path: Path | None = None
    line: Line | None = None
    callable_site: Id | None = None
    site: Id | None = None
    moment: Id | None = None
    removed: Id | None = None
    calls: Count | None = None
    replaced_gradient: bool | None = None
    removable: bool | None = None


ModeKind = Literal["grad", "inference", "autocast", "training", "anomaly", "deterministic"]
ModeForm = Literal["with", "decorator", "call", "unknown"]


class Mode(Row, frozen=True, kw_only=True):
    """A region of the run in which a mode of torch was another one, or a switch of it.

    Attributes:
        n: Its number, in order of time.
        kind: Which mode: grad, inference, autocast, training (`train()` and `eval()` of a module), anomaly,
            deterministic.
        before: The mode before, as text: `True`, `False`, `bfloat16`.
        after: The mode since, likewise.
        how: What switched it: the `with` statement, a decorator of a function, or a plain call.
        switched_by: The function or class of torch that did: `torch.no_grad`, `Module.eval`. None: not known.
        thread: In which thread.
        site: The `with`, decorated function or call. None: outside the user's files.
        moment: First moment under it. None: nothing was recorded under it.
        until: First moment after its end. None: it held to the end, or a plain call has no end.
        module: Of training: the module it was called on. None: another kind, or a module that is not recorded.
        device: Of autocast: the device type, `cpu` or `cuda`. None: another kind.
    """

    n: Id
    kind: ModeKind
    before: Name
    after: Name
    how: ModeForm = "unknown"
    switched_by: Name | None = None
    thread: Id = 0
    site: Id | None = None
    moment: Id | None = None
    until: Id | None = None
    module: Id | None = None
    device: Name | None = None


class TensorArgument(Row, frozen=True, kw_only=True):
    """A tensor handed to a call.

    Attributes:
        name: The parameter's name, or its place counted from 0 where it has none.
        tensor: Which tensor. None: one that has no row.
    """

    name: Name
    tensor: Id | None


NAMED: Final = "="
"""`function` of the rows that say that a statement gave a module a name."""


class WatchedCall(Row, frozen=True, kw_only=True):
    """A call of a function that rules ask about: losses, softmax, dropout, checkpoint, distributions, DDP, loads.

    A statement that gave a module a name counts as a call of `=`, once for each module, name and statement.

    Attributes:
        n: Its number, in order of time.
        function: torch's full name: `torch.nn.functional.cross_entropy`, `torch.nn.Module.load_state_dict`; or `=`.
        moment: The first moment after the call. None: the record ends inside it.
        site: The statement that called it. None: outside the user's files.
        thread: In which thread.
        module_call: The innermost module call open then; of `nn.CrossEntropyLoss` its own. None: none.
        arguments: Arguments that are no tensors, by parameter: a number, a truth value, None, or text as Python writes
            it. Those left at their default are not in it. Of `=` and `load_state_dict` the number of the `module`, None
            for one that is not recorded; of `=` also the `name`.
        inputs: The tensors handed in, by parameter; of `load_state_dict` the first ones of the dict, by key.
        outputs: Tensors that came back, in order; those without a row are left out.
        raised: It ended with an exception.
        col: First column of the call in its line, 1-based, in code points. None: not known.
    """

    n: Id
    function: Name
    moment: Id | None = None
    site: Id | None = None
    thread: Id = 0
    module_call: Id | None = None
    arguments: Annotated[dict[Name, Plain], msgspec.Meta(max_length=64)] = msgspec.field(
        default_factory=dict[Name, Plain]
    )
    inputs: Annotated[tuple[TensorArgument, ...], msgspec.Meta(max_length=256)] = ()
    outputs: Ids = ()
    raised: bool = False
    col: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
