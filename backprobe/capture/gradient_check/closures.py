"""Steps that compute their loss themselves: `optimizer.step(closure)`. One call of the closure is checked like a step.

step 0    the first call of the closure
step 2    the second, of an optimizer that calls it again within a step (LBFGS): it shows what is not cleared between
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from backprobe.capture.gradient_check.check import GradientChecks

_KINDS: Final = (FunctionType, MethodType, functools.partial)
"""What is called and no more: a module that is handed in may be asked for its parameters."""


class Closures:
    """The closures of one run's optimizers."""

    def __init__(self, checks: GradientChecks) -> None:
        self._checks = checks
        self._again: set[int] = set()

    def begin(self, optimizer: Any, args: Any, kwargs: Any, number: int) -> tuple[Any, Any] | None:
        """Watch the closure of a step; return the step's arguments with it, or None if it is no plain function.

        Args:
            number: Of the step.
        """
        is_due = self._checks.is_due(optimizer)
        self._checks.drop()
        if not all(isinstance(argument, _KINDS) for argument in (*args[1:], *kwargs.values()) if callable(argument)):
            if is_due:
                self._checks.compare(optimizer, "the step computes its loss itself, in what is no plain function")
            return None
        which = int(number > 0 and id(optimizer) in self._again) if is_due else None

        def watch(argument: Any) -> Any:
            return self._wrap_closure(optimizer, argument, which) if callable(argument) else argument

        return (args[0], *map(watch, args[1:])), {key: watch(argument) for key, argument in kwargs.items()}

    def _wrap_closure(self, optimizer: Any, closure: Any, which: int | None) -> Any:
        count = 0

        @functools.wraps(closure, updated=())
        def call_closure(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            number, count = count, count + 1
            if number:
                self._again.add(id(optimizer))
            if number == which:
                self._checks.arm()
            result = closure(*args, **kwargs)
            self._checks.end_ghost()
            if number == which:
                self._checks.compare(optimizer, "no use of its tensors was seen in its closure")
                self._checks.drop()
            self._checks.note_use(optimizer)
            return result

        return call_closure
