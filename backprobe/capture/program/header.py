"""Where a program runs, as the header of its record tells it."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Sequence
from typing import Final

import torch

import backprobe
from backprobe import stack
from backprobe.capture.nan_origin.deep_tier import DEVIATION
from backprobe.capture.options import Options
from backprobe.capture.output.text import cut
from backprobe.capture.torch_access import native
from backprobe.record import SCHEMA_VERSION, Environment, Header

_PREFIXES: Final = ("TORCH_", "PYTORCH_")
_NAMES: Final = ("CUDA_LAUNCH_BLOCKING", "OMP_NUM_THREADS")
DEVIATIONS: Final = (
    "names __bp_*__ in builtins, and among the co_names of code objects, whose bytecode is longer",
    "the recursion limit is higher by the frames that lie under the program, and by three",
    "sys.settrace and profilers see the taps",
    "weakref.getweakrefs() and getweakrefcount() are functions of Backprobe, which leave out our references",
    "__loader__ of a module that is imported from the program's folder is a subclass of SourceFileLoader",
    "no .pyc is written of such a module",
    "traceback.extract_stack() and anomaly mode's forward stacks begin with the frames that start the program",
)
"""What the program could notice of being recorded."""


def header(
    options: Options, argv: Sequence[str], fallbacks: Sequence[str], deviations: tuple[str, ...] = DEVIATIONS
) -> Header:
    """Build the first frame of a record."""
    return Header(
        schema_version=SCHEMA_VERSION,
        backprobe_version=backprobe.__version__,
        tier=options.tier,
        entry=options.entry,
        started_at=datetime.datetime.now(datetime.UTC).isoformat(),
        environment=environment(argv),
        fallbacks=tuple(fallbacks),
        deviations=(*deviations, *stack.deviations(), *([DEVIATION] if options.tier == "deep" else [])),
    )


def environment(argv: Sequence[str]) -> Environment:
    """Describe this process, as far as it matters for gradients."""
    return Environment(
        python=platform.python_version(),
        platform=f"{sys.platform} {platform.machine()}",
        torch=str(torch.__version__),
        torch_git=str(torch.version.git_version),
        devices=_devices(),
        threads=torch.get_num_threads(),
        default_dtype=str(torch.get_default_dtype()),
        deterministic=torch.are_deterministic_algorithms_enabled(),
        anomaly_mode=torch.is_anomaly_enabled(),
        initial_seed=_to_signed(torch.initial_seed()),
        argv=tuple(cut(arg) for arg in argv)[:1024],
        tap=native.kind,
        stack_bytes=stack.main_bytes(),
        node_budget=stack.own_budget(),
        variables={
            cut(key, 512): cut(value) for key, value in os.environ.items() if key.startswith(_PREFIXES) or key in _NAMES
        },
    )


def _devices() -> tuple[str, ...]:
    """Names of the accelerators; CUDA is asked only if it is there, since asking starts its driver."""
    if not torch.backends.cuda.is_built() or not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def _to_signed(seed: int) -> int:
    """Convert a 64-bit seed to the signed number that a record's field holds."""
    return seed - 2**64 if seed >= 2**63 else seed
