"""What happened and when: moments, leaf gradients, in-place changes, modules, exceptions, warnings."""

from typing import Annotated, Literal

import msgspec

from backprobe.record.rows.fields import Count, Id, Int, Line, Name, Nanoseconds, Path, Row, Text

MomentKind = Literal["after-statement", "before-backward", "after-backward", "optimizer-step", "end"]


class Moment(Row, frozen=True, kw_only=True):
    """A point in the run at which state is taken.

    Attributes:
        moment: Its number: the order in the run.
        kind: after-statement, before-backward, after-backward, optimizer-step or end: what had just happened, or was
            about to.
        time_ns: Since the start of the record.
        k: Counts the moments of its kind that carry a number, backward call or optimizer step; 0 otherwise.
        site: The statement. None: at none.
        thread: In which thread.
        module_call: The innermost module call open. None: none.
        step: Optimizer steps finished before it.
        grad_mode: Autograd recorded operations: grad mode was on and inference mode off.
        inference_mode: Under `inference_mode`.
        autocast: dtype per device as text. None: off.
        stack: The calls in the user's files that led to the function of its statement. None: none did.
    """

    moment: Id
    kind: MomentKind
    time_ns: Nanoseconds
    k: Count = 0
    site: Id | None = None
    thread: Id = 0
    module_call: Id | None = None
    step: Count = 0
    grad_mode: bool = True
    inference_mode: bool = False
    autocast: Name | None = None
    stack: Id | None = None


class LeafGrad(Row, frozen=True, kw_only=True):
    """A change of one leaf's `.grad`.

    Attributes:
        n: Its number, in order of time.
        tensor: Whose `.grad`.
        moment: When it was seen.
        kind: populate (None -> tensor), accumulate (same tensor, version up, in a pass), accumulate-new-tensor (in a
            create_graph pass), modified-in-place, assigned, set-none, untouched.
        call: The backward call in which it happened. None: outside any.
        site: The statement. None: at none.
        grad_before: Number of the tensor in `.grad` before. None: there was none.
        grad_after: Number of the tensor in `.grad` after. None: there is none.
        version_before: `_version` of `.grad` before. None: there was none.
        version_after: `_version` of `.grad` after. None: there is none.
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
        n: Its number, in order of time.
        tensor: Which tensor.
        moment: When it was seen.
        version_before: `_version` before.
        version_after: `_version` after; equal if it did not rise, as after a write through `.data`.
        done_by: statement; optimizer; backward: a gradient, bound to a name, that a backward call accumulated into;
            unknown.
        site: The statement. None: not known.
        optimizer: The optimizer that stepped. None: none did.
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
    """A parameter or buffer of a module, by its name in that module.

    Attributes:
        name: In the module itself, without its path.
        tensor: Which tensor; one number in two modules: it is shared. None: not recorded.
        requires_grad: When the module was first seen.
    """

    name: Name
    tensor: Id | None
    requires_grad: bool = False


class Module(Row, frozen=True, kw_only=True):
    """An `nn.Module` of the program.

    Attributes:
        module: Its number.
        cls: Name of its class.
        binding: The name it was bound to. None: not a root, or without a name.
        fqn: Its path below the root, `model.0`. None: a root.
        site: Where it was first seen. None: not known.
        user_code: Its class is defined in the user's files.
        training: In training mode when first seen.
        parameters: Its own, not its children's.
        buffers: Its own, not its children's.
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
        module_call: Its number.
        module: Whose call.
        k: Counts the module's calls from 0.
        chain: The calls it was made in, outermost first: `model#0.0#0`.
        parent: The call in which it was made. None: none.
        site: The statement that called it. None: not known.
        lo: Autograd sequence number at enter.
        hi: At leave: its nodes are those in [lo, hi).
        thread: In which thread.
        training: In training mode then.
        grad_mode: Autograd recorded operations then: grad mode was on and inference mode off.
        recompute: A checkpoint's second forward.
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


class Frame(Row, frozen=True, kw_only=True):
    """One frame of a traceback.

    Attributes:
        path: Relative to the project, or to the library's folder.
        line: The line it stood at.
        function: Qualified name.
        user: It lies in the user's files.
    """

    path: Path
    line: Line
    function: Name
    user: bool = False


class Raised(Row, frozen=True, kw_only=True):
    """An exception: uncaught, or one that left a backward call and was caught by the program.

    Attributes:
        n: Its number.
        type: Name of its class.
        message: Exact text, cut at 8192 characters.
        frames: Innermost last.
        site: The user's innermost statement in it. None: none.
        moment: The last moment before it. None: there was none.
        call: The backward call in progress. None: none.
        caught: The program went on after it.
        facts: What torch's text says of an in-place error and the like, by name: op, output, version, expected_version,
            shape.
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
        n: Its number.
        category: Name of its class.
        message: Exact text.
        path: The file it points at.
        line: The line it points at.
        site: The user's statement it points at. None: not in the user's files.
        moment: When it was first shown. None: before the first moment.
        count: How often it was shown.
        family: As of `Raised`. None: none that we know.
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
    """A cap that bit, or a part that was skipped: nothing is left out silently.

    Attributes:
        n: Its number.
        what: Which rows, or which part.
        why: In a sentence.
        limit: The cap; 0: there is none.
        seen: How many there were; in a record without its end, at least half of them.
        kept: How many are in the record.
        moment: When it first bit. None: after the record was full, or not known.
    """

    n: Id
    what: Name
    why: Text
    limit: Count = 0
    seen: Count = 0
    kept: Count = 0
    moment: Id | None = None
