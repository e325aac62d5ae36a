"""The functions of torch whose calls are written down: losses, softmax, dropout, distributions, checkpoint, DDP, loads.

1. One is watched once a file of the program names it or the module that calls it: reading and compiling torch's
   sources takes a millisecond for each.
2. `torch.softmax`, `Tensor.sigmoid`, `Tensor.detach` and the like are no Python functions and have no such code. They
   are recorded by their nodes (`SoftmaxBackward0` with its line) and as the call that a tensor comes from.
3. Learning-rate schedules are recorded where they are built, with their lengths and modes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch.nn.parallel import DistributedDataParallel
from torch.optim import lr_scheduler
from torch.utils import checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFunction:
    """One function.

    Attributes:
        name: torch's full name. words: One of them is in the text of a program that uses it, in lower case and
            without underscores.
        parameters: Its parameters, in the order in which the tap is given their values; the last collects what is
            given beyond the others if it is `variadic`.
        gives: It returns a value; a region does not. loads: A method of a module that takes a dict of tensors.
        builds: The constructor of a schedule, whose plain attributes are read.
    """

    function: FunctionType
    name: str
    words: tuple[str, ...]
    parameters: tuple[str, ...]
    defaults: dict[str, Any]
    variadic: bool
    gives: bool = True
    loads: bool = False
    builds: bool = False


def _plain(function: Any) -> FunctionType:
    """Return the function whose code is swapped, below its decorators."""
    return inspect.unwrap(function)


def _watch_entry(
    function: Any, name: str, *words: str, gives: bool = True, loads: bool = False, builds: bool = False
) -> WatchedFunction:
    plain = _plain(function)
    code: CodeType = plain.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    parameters = code.co_varnames[: count + variadic]
    positional = code.co_varnames[: code.co_argcount]
    given = plain.__defaults__ or ()
    defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
    defaults.update(plain.__kwdefaults__ or {})
    return WatchedFunction(
        function=plain, name=name, words=words, parameters=parameters, defaults=defaults, variadic=variadic,
        gives=gives, loads=loads, builds=builds,
    )  # fmt: skip


_SHORT: Final = {
    "binary_cross_entropy": "bceloss",
    "binary_cross_entropy_with_logits": "bcewithlogits",
    "kl_div": "kldiv",
}
_FUNCTIONAL: Final = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    "softmax", "log_softmax", "softmin", "gumbel_softmax", "sigmoid",
    "dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
)  # fmt: skip


def _table() -> Iterator[WatchedFunction]:
    for name in _FUNCTIONAL:
        words = (name.replace("_", ""), *((_SHORT[name],) if name in _SHORT else ()))
        yield _watch_entry(getattr(F, name), f"torch.nn.functional.{name}", *words)
    for function in (checkpoint.checkpoint, checkpoint.checkpoint_sequential):
        yield _watch_entry(function, f"torch.utils.checkpoint.{function.__name__}", "checkpoint")
    ddp, parallel = DistributedDataParallel, "torch.nn.parallel.DistributedDataParallel"
    yield _watch_entry(ddp.forward, f"{parallel}.forward", "distributeddataparallel")
    yield _watch_entry(ddp.no_sync, f"{parallel}.no_sync", "nosync", gives=False)
    load = torch.nn.Module.load_state_dict
    yield _watch_entry(load, "torch.nn.Module.load_state_dict", "loadstatedict", gives=False, loads=True)
    yield from _distributions()
    yield from _schedules()


def _schedules() -> Iterator[WatchedFunction]:
    """Yield what builds schedules, and loads their state. Constructors that call `super()` keep their code.

    Their base's is called when the lengths and modes stand in the schedule.
    """
    words, module = ("lrscheduler", "reducelronplateau"), "torch.optim.lr_scheduler"
    for cls in vars(lr_scheduler).values():
        if isinstance(cls, type) and issubclass(cls, lr_scheduler.LRScheduler):
            own = vars(cls)
            if (made := own.get("__init__")) is not None and not made.__code__.co_freevars:
                yield _watch_entry(made, f"{module}.{cls.__name__}", *words, gives=False, builds=True)
            if (load := own.get("load_state_dict")) is not None and not load.__code__.co_freevars:
                yield _watch_entry(load, f"{module}.{cls.__name__}.load_state_dict", *words, gives=False)


def _distributions() -> Iterator[WatchedFunction]:
    """Yield what each class of a distribution defines itself."""
    base = torch.distributions.Distribution
    for cls in vars(torch.distributions).values():
        if isinstance(cls, type) and issubclass(cls, base):
            for method in ("sample", "rsample", "log_prob"):
                function: Callable[..., Any] | None = vars(cls).get(method)
                if isinstance(function, FunctionType):
                    yield _watch_entry(function, f"{cls.__module__}.{cls.__name__}.{method}", "distributions")


TABLE: Final = tuple(_table())


def named_in(text: str) -> list[int]:
    """Which of them a program's text names."""
    small = text.lower().replace("_", "")
    return [number for number, watched in enumerate(TABLE) if any(word in small for word in watched.words)]
