"""What the engine uses of torch that torch does not call public, in one place: the first to look at for a new torch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import torch
from torch._guards import TracingContext
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # not in its stub
from torch.utils.hooks import RemovableHandle

from backprobe.record import state_flags

_C: Final[Any] = torch._C

if not hasattr(_C._autograd.SavedTensor, "data"):
    raise ImportError(
        f"torch {torch.__version__} is too old for Backprobe: it does not tell what a node of the graph saves. "
        "Backprobe was tried with torch 2.11 and 2.13: `pip install 'torch>=2.11'`",
        name="torch",
    )

next_sequence_number: Final = _C._autograd._get_sequence_nr
"""The autograd sequence number that this thread's next node will have."""

_is_wrapped: Final = _C._functorch.is_functorch_wrapped_tensor
_is_batched: Final = _C._functorch.is_legacy_batchedtensor
functorch_is_active: Final = _C._are_functorch_transforms_active
tracing_state: Final = _C._get_tracing_state
"""Not None under `torch.jit.trace`."""

current_pass: Final = _C._current_graph_task_id
"""The engine's number of the pass that this thread works for; -1 outside of one."""

dispatch_modes: Final = _C._len_torch_dispatch_stack
function_modes: Final = _C._len_torch_function_stack
profiler_is_on: Final = _C._autograd._profiler_enabled
norms_of_each: Final[Any] = torch._foreach_norm  # pyright: ignore[reportPrivateImportUsage]
flattened: Final[Any] = _C._nn.flatten_dense_tensors
"""Tensors of one dtype as one, in one operation."""

below_autograd: Final = _C._AutoDispatchBelowAutograd
without_torch_function: Final = _C.DisableTorchFunction

_AUTOCAST: Final[Any] = _C.DispatchKeySet(_C.DispatchKey.AutocastCPU) | _C.DispatchKeySet(_C.DispatchKey.AutocastCUDA)


EXACT: Final = frozenset({torch.Tensor, torch.nn.Parameter})
"""The types whose attributes no user code answers."""

_REGION: Final = "__compiled_fn"
"""How the names begin by which dynamo's code calls what it compiled."""

_handles: Final = iter(range(2**40, 2**62))


def _bytes_lie_at() -> int | None:
    """Where a storage object keeps its size, in bytes from its address; None where three probes do not agree."""
    probes = [torch.empty(size, dtype=torch.uint8, device="cpu") for size in (7, 1001, 12347)]
    for where in range(8, 64, 8):
        if all(
            ctypes.c_int64.from_address(_C._storage_address(probe) + where).value == probe.numel() for probe in probes
        ):
            return where
    return None


_BYTES_AT: Final = _bytes_lie_at()  # now: a mode of the program would see the probes


def below_autocast() -> Any:
    """Keep `torch.autocast` of the program from turning Backprobe's reductions into copies of their whole input."""
    return _C._ExcludeDispatchKeyGuard(_AUTOCAST)


def stream_of(device: torch.device) -> Any:
    """Return the stream on which this thread queues work of a device; None for one that is not CUDA."""
    return torch.cuda.current_stream(device) if device.type == "cuda" and torch.cuda.is_initialized() else None


def default_stream(device: torch.device) -> Any:
    """Return the stream of a device that has the number 0; None for one that is not CUDA."""
    return torch.cuda.default_stream(device) if device.type == "cuda" else None


_stream_number: Final[Any] = getattr(_C, "_cuda_getCurrentRawStream", None)


def stream_number(device: torch.device) -> int:
    """Which stream that is, without making an object of it; 0 for the default one, and where it is not CUDA."""
    if device.type != "cuda" or device.index is None:
        return 0
    if _stream_number is None:  # a torch that has another way to ask
        return torch.cuda.current_stream(device).cuda_stream
    return _stream_number(device.index)


def is_capturing(device: torch.device) -> bool:
    """Return whether a CUDA graph is being recorded: it would contain an operation, and a transfer would break it."""
    return device.type == "cuda" and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_left_out(tensor: torch.Tensor) -> bool:
    """Return whether there is nothing to record: a transform's value, or a lazy parameter without a shape."""
    if is_functorch_wrapped(tensor):
        return True
    return type(tensor) not in EXACT and isinstance(tensor, UninitializedTensorMixin)


def is_functorch_wrapped(tensor: torch.Tensor) -> bool:
    """Return whether it is a value under `vmap`, `grad` or `is_grads_batched`: such a value has no memory."""
    return _is_wrapped(tensor) or _is_batched(tensor)


@contextmanager
def own_hook_numbers() -> Iterator[None]:
    """Hooks registered inside take numbers of their own: the program's next hook gets the one it would have."""
    before, RemovableHandle.next_id = RemovableHandle.next_id, next(_handles)
    try:
        yield
    finally:
        RemovableHandle.next_id = before


def is_compiling() -> bool:
    """`torch.compile` or `torch.export` traces in this thread."""
    return TracingContext.try_get() is not None


def is_compiled_region(frame: FrameType) -> bool:
    """Return whether a frame runs what `torch.compile` made of its function, all of it at the line of its `def`.

    The statement is then that which called the function.
    """
    code = frame.f_code
    return frame.f_lineno == code.co_firstlineno and any(name.startswith(_REGION) for name in code.co_names)


def autograd_records() -> bool:
    """Return whether autograd records operations now. Inside inference mode `enable_grad` has no effect."""
    return torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def data_address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's first element; 0 if it has no memory.

    Unlike `data_ptr()` this does not make a copy-on-write tensor real. `_data_address` is that of the storage's first.
    """
    start = _C._data_address(tensor)
    return start + tensor.storage_offset() * tensor.element_size() if start else 0


def version_of(tensor: torch.Tensor) -> int | None:
    """`_version`; None for an inference tensor, which has none, also where `.data =` took that flag from it."""
    try:
        return None if tensor.is_inference() else tensor._version
    except RuntimeError:
        return None


def flags_of(tensor: torch.Tensor) -> tuple[bool, ...] | None:
    """`is_leaf`, `requires_grad`, `retains_grad` ... (`STATE_FLAGS`); None where torch refuses to answer.

    It does for one of several views of a base (`unbind`, `split`) once the base was changed in place.
    """
    try:
        return state_flags.flags_of(tensor)
    except RuntimeError:
        return None


def node_of(tensor: torch.Tensor) -> Any:
    """`grad_fn`; None for a leaf, and where torch refuses to answer."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


class Untold(RuntimeError):
    """What was asked of a tensor is for the user's class to say, and was not asked of it."""


class _NotAsked:
    """Stands where a dispatch mode does: torch comes here before it goes to a subclass's `__torch_dispatch__`.

    Not a `TorchDispatchMode`: entering one of those costs six times as much.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types:
            raise Untold(f"{func} is answered by the program")
        return func(*args, **(kwargs or {}))


_NOT_ASKED: Final = _NotAsked()
_UNDISPATCHED: Final = _C._disabled_torch_dispatch_impl


def is_answered_by_user(tensor: torch.Tensor) -> bool:
    """Return whether the tensor's class has its own `__torch_dispatch__`, which may decide the sizes."""
    kind: Any = type(tensor)
    if kind in EXACT:
        return False
    answers = kind.__torch_dispatch__
    return answers is not _UNDISPATCHED and not (getattr(answers, "__module__", "") or "").startswith("torch.")


@contextmanager
def user_not_asked() -> Iterator[None]:
    """Inside, what the user's `__torch_dispatch__` would answer raises `Untold`, and that code does not run."""
    _C._push_on_torch_dispatch_stack(_NOT_ASKED)
    try:
        yield
    finally:
        _C._pop_torch_dispatch_stack(None)


def storage_address(tensor: torch.Tensor) -> int | None:
    """Return the address of a tensor's storage object; None for sparse, mkldnn and the like, which have none.

    Not by `untyped_storage()`: the object that this makes counts as a user of the storage for as long as the tensor
    lives, so autograd would no longer add to a gradient in place.
    """
    try:
        return _C._storage_address(tensor)
    except (NotImplementedError, RuntimeError):
        return None


def storage_of(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the address and the bytes of a tensor's storage; None where it has none."""
    address = storage_address(tensor)
    if address is None:
        return None
    size = -1 if _BYTES_AT is None else ctypes.c_int64.from_address(address + _BYTES_AT).value
    if size < 0:  # not learned, or a symbol
        size = int(tensor.untyped_storage().nbytes())
    return address, size
