"""What a program may leave behind in its process: looked at before, put back or looked at again after."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import warnings
from typing import Any, Final

import torch
from torch.nn.modules import module as torch_module

_CLASSES: Final = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.autograd.Function, torch.optim.Optimizer)
"""What programs subclass or patch."""


class State:
    """The state of this process now; `holds` says whether it is the same again, its random states put back."""

    def __init__(self) -> None:
        self._random = _random_states()
        self._seen = _read_state()

    def holds(self) -> bool:
        """Nothing is left of the program that ran since, as far as can be seen."""
        gc.collect()  # what lives in cycles ends with its program, not in the midst of the next
        torch_state, python_state, numpy_state = self._random
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if numpy_state is not None:
            sys.modules["numpy"].random.set_state(numpy_state)
        return _read_state() == self._seen


def _random_states() -> tuple[torch.Tensor, Any, Any]:
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), None if numpy is None else numpy.random.get_state()


def _read_state() -> tuple[object, ...]:
    return (*_of_python(), *_of_torch())


def _of_python() -> tuple[object, ...]:
    return (
        frozenset(sys.modules),
        threading.active_count(),
        _has_children(),
        os.getcwd(),
        [signal.getsignal(signal_number) for signal_number in range(1, signal.NSIG)],
        list(sys.path),
        list(sys.meta_path),
        sys.getrecursionlimit(),
        (sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook),
        (id(sys.stdin), id(sys.stdout), id(sys.stderr)),
        (gc.isenabled(), gc.get_threshold(), len(gc.callbacks), gc.get_debug(), len(gc.garbage)),
        list(warnings.filters),
        warnings.showwarning,
    )


def _of_torch() -> tuple[object, ...]:
    tables = vars(torch_module) | vars(sys.modules[torch.optim.Optimizer.__module__])
    hooks = [len(tables[name]) for name in tables if name.startswith("_global_") and name.endswith("hooks")]
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
        str(torch.get_default_device()),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        hooks,
        [tuple(map(id, vars(class_).values())) for class_ in _CLASSES],
    )


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
