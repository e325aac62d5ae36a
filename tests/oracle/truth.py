"""What torch itself says of a program, statement by statement: a plain run that reads everything after each of them.

Nothing here knows the engine. Tensors are held by weak references; a number stands for each.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import re
import sys
import types
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from tests.oracle.graphs import elements, holds, node_key, node_of, norm, state_of, storage, type_of, version_of, walked
from tests.oracle.reads import with_reads

FILE: Final = "truth.py"
_DEPTH: Final = 2
_MOST: Final = 16
_LINE: Final = re.compile(rf'File "{FILE}", line (\d+)')


@dataclass(frozen=True, slots=True)
class State:
    """One tensor at one event; `grad` is "not-read" where reading it would warn."""

    is_leaf: bool
    requires_grad: bool
    retains_grad: bool
    version: int | None
    grad: str
    grad_of: int | None
    grad_version: int | None
    grad_fn: str | None
    value: str
    grad_value: str
    norm: float | None
    grad_norm: float | None


@dataclass(slots=True)
class Event:
    """A point of the run at which everything was read.

    Attributes:
        kind: after, block, for, match, enter, return; before, left (of a backward call); step; end.
        arrived: The engine entered the function, in the backward call k.
        caller: The line of the program from which the function was entered.
        names: What each simple name holds, by the function that it belongs to and itself.
        bound: The names that hold something else than at the event before.
        changed: Tensors whose state is new. dead: those gone since the event before.
    """

    kind: str
    line: int
    function: str
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    bound: set[tuple[str, str]] = field(default_factory=set)
    changed: dict[int, State] = field(default_factory=dict)
    dead: list[int] = field(default_factory=list)
    grad_mode: bool = True
    inference: bool = False
    k: int = 0
    arrived: bool = False
    caller: int = 0


@dataclass(slots=True)
class Call:
    """One call of the engine."""

    line: int
    retain_graph: bool
    create_graph: bool
    accumulate: bool
    roots: list[int]
    inputs: list[int | None] | None
    nodes: list[str]
    freed: list[str] = field(default_factory=list)
    returned: tuple[bool, ...] | None = None
    raised: bool = False
    parent: int | None = None


@dataclass(slots=True)
class Facts:
    """A tensor's constants, as first read."""

    shape: tuple[int, ...]
    dtype: str
    cls: str
    storage: int
    base: int | None
    first: int
    named: int | None = None


@dataclass(slots=True)
class Truth:
    """A whole run."""

    events: list[Event] = field(default_factory=list)
    tensors: dict[int, Facts] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    steps: list[tuple[int, str, int, int]] = field(default_factory=list)
    modules: list[tuple[int, str, int, bool, bool]] = field(default_factory=list)
    parameters: dict[str, set[int]] = field(default_factory=dict)
    held: dict[int, tuple[str, int]] = field(default_factory=dict)
    lines: dict[str, set[int]] = field(default_factory=dict)
    arrived: dict[tuple[int, str, int], float | None] = field(default_factory=dict)
    unreadable: dict[int, int] = field(default_factory=dict)
    storages: dict[int, int] = field(default_factory=dict)
    raised: tuple[str, str, int] | None = None


class _Ref(weakref.ref[torch.Tensor]):
    """A weak reference of the reader's, which the program does not see: `torch.utils.swap_tensors` refuses any."""

    __slots__ = ()


def _without_ours(thing: Any, /) -> list[Any]:
    return [ref for ref in _every_ref(thing) if not isinstance(ref, _Ref)]


_every_ref: Final = weakref.getweakrefs


class Reader:
    """Reads a running program."""

    def __init__(self, *, traced: bool) -> None:
        self.truth, self._traced = Truth(), traced
        self._refs: dict[int, weakref.ref[torch.Tensor]] = {}
        self._by_id: dict[int, int] = {}
        self._states: dict[int, State] = {}
        self._storages: dict[int, int] = {}
        self._dead: list[int] = []
        self._names: dict[tuple[str, str], int] = {}
        self._next = 0
        self._open: list[int] = []
        self.space: dict[str, Any] = {}
        self.base = torch._C._autograd._get_sequence_nr()
        self.quiet = False

    # ---- what the program calls

    def see(self, kind: str, line: int) -> None:
        """Read everything after a statement."""
        frame = sys._getframe(1)
        if kind != "block" or frame.f_code.co_name == "<module>":  # a block's end counts at the top level only
            self.read(kind, line, frame)

    def gave(self, line: int, value: Any) -> Any:
        """Read everything at a `return`."""
        self.read("return", line, sys._getframe(1), (value,))
        return value

    # ---- reading

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor."""
        found = self._by_id.get(id(tensor))
        if found is not None and self._refs[found]() is tensor:
            return found
        number, self._next = self._next, self._next + 1
        key = id(tensor)

        def note_death(_: Any) -> None:
            self._dead.append(number)
            if self._by_id.get(key) == number:
                del self._by_id[key]

        self._refs[number] = _Ref(tensor, note_death)
        self._by_id[key] = number
        base = tensor._base if tensor._is_view() else None
        shape = tuple(tensor.shape)
        self.truth.tensors[number] = Facts(
            shape, str(tensor.dtype)[6:], type(tensor).__name__, storage(tensor),
            None if base is None else self.number(base), len(self.truth.events),
        )  # fmt: skip
        return number

    def read(self, kind: str, line: int, frame: types.FrameType | None, more: Sequence[Any] = (), k: int = 0) -> None:
        """One event."""
        if self.quiet:
            return
        event = Event(kind, line, "" if frame is None else _function(frame), k=k)
        event.grad_mode, event.inference = records_operations(), torch.is_inference_mode_enabled()
        if kind == "enter" and frame is not None:
            event.caller = _line_of(frame.f_back)
        if kind == "enter" and self._open and frame is not None and frame.f_back.f_code.co_filename != FILE:
            event.arrived, event.k = True, self._open[-1]
        for function, name, value in self._visible(frame):
            self._meet(value, _DEPTH)
            if isinstance(value, torch.Tensor):
                event.names[function, name] = self.number(value)
        for value in more:
            self._meet(value, _DEPTH)
        event.bound = {key for key, number in event.names.items() if self._names.get(key) != number}
        scopes = {"<module>", event.function}
        self._names = {key: n for key, n in self._names.items() if key[0] not in scopes} | event.names
        for number in event.names.values():
            facts = self.truth.tensors[number]
            if facts.named is None:
                facts.named = len(self.truth.events)
        self._parameters()
        for number, ref in list(self._refs.items()):
            tensor = ref()
            if tensor is not None:
                self._state(number, tensor, event)
        event.dead, self._dead = self._dead, []
        for number in event.dead:
            self._refs.pop(number, None)
        self.truth.events.append(event)

    def _visible(self, frame: types.FrameType | None) -> Iterator[tuple[str, str, Any]]:
        for name, value in list(self.space.items()):
            if not name.startswith("__"):
                yield "<module>", name, value
        if frame is not None and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function, whose `f_locals` is a copy
            code, held = frame.f_code, frame.f_locals
            values = [
                (code.co_qualname, name, held[name]) for name in (*code.co_varnames, *code.co_cellvars) if name in held
            ]
            held.clear()  # what the interpreter copied there would live on
            yield from values
            del values

    def _meet(self, value: Any, depth: int) -> None:
        """Follow tensors in short containers, as far as names lead to them."""
        if isinstance(value, torch.Tensor):
            self.number(value)
        elif depth and isinstance(value, (list, tuple)) and len(value) <= _MOST:
            for element in value:
                self._meet(element, depth - 1)
        elif depth and isinstance(value, dict) and len(value) <= _MOST:
            for element in value.values():
                self._meet(element, depth - 1)

    def _parameters(self) -> None:
        net = self.space.get("net")
        if isinstance(net, torch.nn.Module):
            for name, tensor in (*net.named_parameters("net"), *net.named_buffers("net")):
                self.truth.parameters.setdefault(name, set()).add(self.number(tensor))

    def _state(self, number: int, tensor: torch.Tensor, event: Event) -> None:
        try:
            node = tensor.grad_fn
        except RuntimeError:  # a view that torch no longer answers for
            node = None
            self.truth.unreadable.setdefault(number, len(self.truth.events))
        else:
            is_leaf, wants, retains = tensor.is_leaf, tensor.requires_grad, tensor.retains_grad
            gradient = tensor.grad if is_leaf or retains else None
            known = None if gradient is None else self.number(gradient)
            state = State(
                is_leaf, wants, retains, version_of(tensor),
                "not-read" if not (is_leaf or retains) else "none" if gradient is None else "present", known,
                None if gradient is None else version_of(gradient), None if node is None else type(node).__name__,
                elements(tensor), "" if gradient is None else elements(gradient), norm(tensor),
                None if gradient is None else norm(gradient),
            )  # fmt: skip
            if gradient is not None and known not in self._states:
                self._state(known or 0, gradient, event)
            if self._states.get(number) != state:
                self._states[number] = event.changed[number] = state

    # ---- the engine, optimizers, modules

    def engine(self, plain: Any) -> Any:
        """The engine's Python entry, read before and after."""

        def read(t_outputs: Sequence[Any], *args: Any, **options: Any) -> Any:
            if torch._C._are_functorch_transforms_active():
                return plain(t_outputs, *args, **options)
            frame = _user_frame()
            line = 0 if frame is None else frame.f_lineno
            inputs = args[3] if len(args) > 3 else ()
            k = len(self.truth.calls)
            call = Call(
                line, bool(args[1]), bool(args[2]), bool(options.get("accumulate_grad")),
                [self.number(t) for t in t_outputs if isinstance(t, torch.Tensor)],
                [self.number(t) if isinstance(t, torch.Tensor) else None for t in inputs] if inputs else None, [],
                parent=self._open[-1] if self._open else None,
            )  # fmt: skip
            self.truth.calls.append(call)
            self.read("before", line, frame, k=k)
            nodes = walked([node_of(t) if isinstance(t, torch.Tensor) else t.node for t in t_outputs])
            call.nodes = [self.key(node) for node in nodes]
            holding = [node for node in nodes if holds(node)]
            handles = self._trace(nodes, k) if self._traced else []
            self._open.append(k)
            try:
                found = plain(t_outputs, *args, **options)
                if not call.accumulate:
                    call.returned = tuple(gradient is not None for gradient in found)
            except BaseException:
                call.raised = True
                raise
            finally:
                self._open.pop()
                call.freed = sorted(self.key(node) for node in holding if not holds(node))
                for handle in handles:
                    handle.remove()
                del nodes, holding
                self.read("left", line, frame, k=k)
            return found

        return read

    def _trace(self, nodes: Sequence[Any], k: int) -> list[Any]:
        """The line that made each node, as torch's anomaly mode kept it, and hooks that see what reaches it."""
        handles: list[Any] = []
        for node in nodes:
            key = self.key(node)
            if "@" not in key:
                continue
            made = [int(n) for text in node.metadata.get("traceback_", ()) for n in _LINE.findall(text)]
            if made:
                self.truth.lines.setdefault(key, set()).add(made[-1])

            def reached(gradients: Any, key: str = key) -> None:
                for number, gradient in enumerate(gradients):
                    if isinstance(gradient, torch.Tensor):
                        self.truth.arrived[k, key, number] = norm(gradient)

            handles.append(node.register_prehook(reached))
        return handles

    def key(self, node: Any) -> str:
        """A node by its type and its place among those of the run."""
        number = node._sequence_nr()
        return type_of(node) if number == 2**64 - 1 else node_key(type_of(node), number, self.base)

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """After `Optimizer.step`."""
        frame = _user_frame()
        line = 0 if frame is None else frame.f_lineno
        self._opt("step", line, optimizer)
        self.read("step", line, frame)

    def zeroed(self, plain: Any) -> Any:
        """`Optimizer.zero_grad`, read after."""

        def read(optimizer: Any, set_to_none: bool = True) -> None:
            plain(optimizer, set_to_none)
            frame = _user_frame()
            self._opt("zero_grad", 0 if frame is None else frame.f_lineno, optimizer)

        return read

    def _opt(self, kind: str, line: int, optimizer: Any) -> None:
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        having = sum(1 for tensor in tensors if tensor.is_leaf and tensor.grad is not None)
        self.truth.steps.append((line, kind, having, len(tensors) - having))

    def before_forward(self, module: torch.nn.Module, *_: Any) -> None:
        """Before a module's forward."""
        frame = _user_frame()
        line = 0 if frame is None else frame.f_lineno
        depth = sum(1 for f in _frames() if f.f_code.co_name == "_call_impl")
        self.truth.modules.append((line, type(module).__name__, depth, module.training, records_operations()))

    def end(self) -> None:
        """The state at the end, and what live graphs hold."""
        self.read("end", 0, None)
        for number, ref in self._refs.items():
            tensor = ref()
            if tensor is not None:
                self.truth.storages[number] = storage(tensor)
            del tensor
        made = [(n, t) for n, ref in self._refs.items() if (t := ref()) is not None and node_of(t) is not None]
        inner: set[int] = set()
        alive = walked([node_of(t) for _, t in made])
        for node in alive:
            inner.update(id(following) for following, _ in node.next_functions if following is not None)
        for number, tensor in made:
            if id(node_of(tensor)) not in inner:
                graph = walked([node_of(tensor)])
                self.truth.held[number] = (state_of(graph), sum(1 for node in graph if holds(node)))


def _frames() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _user_frame() -> types.FrameType | None:
    return next((frame for frame in _frames() if frame.f_code.co_filename == FILE), None)


def _line_of(frame: types.FrameType | None) -> int:
    """The line that the program's innermost frame is at, from a frame outwards."""
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def _function(frame: types.FrameType) -> str:
    return frame.f_code.co_qualname


@contextlib.contextmanager
def _reading(reader: Reader) -> Iterator[None]:
    """Torch as a plain program finds it, but for our reads."""
    from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

    plain, zero = torch.autograd._engine_run_backward, Optimizer.zero_grad
    weakref.getweakrefs = _without_ours
    torch.autograd._engine_run_backward = reader.engine(plain)
    Optimizer.zero_grad = reader.zeroed(zero)
    handles = [
        register_optimizer_step_post_hook(reader.stepped),
        torch.nn.modules.module.register_module_forward_pre_hook(reader.before_forward),
    ]
    try:
        yield
    finally:
        torch.autograd._engine_run_backward, Optimizer.zero_grad = plain, zero
        weakref.getweakrefs = _every_ref
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def fresh_torch() -> Iterator[None]:
    """Modes, seeds and the collector as at a program's start, and put back after it."""
    torch.manual_seed(0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_grad_enabled(True)
        if collecting:
            gc.enable()


def truth(source: str, *, traced: bool = False) -> Truth:
    """Run a program plainly, and read it.

    Args:
        traced: Also ask torch's anomaly mode which line made each node, and the nodes what reaches them. Lifetimes are
            not a plain run's then.
    """
    code = with_reads(source, FILE)
    with fresh_torch(), torch.autograd.set_detect_anomaly(traced, check_nan=False):
        reader = Reader(traced=traced)
        main = types.ModuleType("__main__")
        reader.space = main.__dict__
        main.__dict__.update(__see__=reader.see, __gave__=reader.gave)
        before, sys.modules["__main__"] = sys.modules["__main__"], main
        try:
            with _reading(reader):
                error = _run(code, main, reader)  # as long as it lives, so do the frames that it came through
                reader.end()
                del error
        finally:
            sys.modules["__main__"] = before
            main.__dict__.clear()
            reader.space = {}
    return reader.truth


def _run(code: Any, main: types.ModuleType, reader: Reader) -> Exception | None:
    try:
        exec(code, main.__dict__)
    except Exception as error:
        tb, line = error.__traceback__, 0
        while tb is not None:
            line = tb.tb_lineno if tb.tb_frame.f_code.co_filename == FILE else line
            tb = tb.tb_next
        reader.truth.raised = (type(error).__name__, str(error), line)
        return error
    return None


def records_operations() -> bool:
    """Return whether autograd records: grad mode alone does not tell inside of `inference_mode`."""
    return torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
