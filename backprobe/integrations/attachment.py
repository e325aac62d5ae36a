"""A watch that is entered and left by callbacks, at two moments of somebody else's loop."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from backprobe.job_watch import watch

if TYPE_CHECKING:
    from backprobe.job_watch import Watching

_log: Final = logging.getLogger("backprobe")


class Attachment:
    """At most one watch at a time; nothing here raises into the loop.

    Args:
        options: Of `backprobe.watch`.

    Attributes:
        watching: The last watch that was entered; None: there was none.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        watch(**options)  # what cannot be is refused where it is written, and not in the middle of a job
        self._options = dict(options)
        self._open = False
        self.watching: Watching | None = None

    def begin(self, watched: Sequence[tuple[str, Any]]) -> None:
        """Watch things, each with the name that the record gives it; while something is watched nothing happens."""
        if self._open:
            return
        try:
            made = watch(*(thing for _, thing in watched), **self._options).set_names([name for name, _ in watched])
            made.__enter__()
        except Exception as error:  # noqa: BLE001 - the fence: the loop goes on without
            _log.warning("this training is not watched: %s: %s", type(error).__name__, error)
            return
        self.watching, self._open = made, True

    def end(self, error: BaseException | None = None) -> None:
        """Leave the watch, with the exception that ended the loop; again: nothing."""
        if not self._open or self.watching is None:
            return
        self._open = False
        try:
            self.watching.__exit__(None if error is None else type(error), error, None)
        except Exception as ours:  # noqa: BLE001 - the same
            _log.warning("the watch of this training did not end well: %s: %s", type(ours).__name__, ours)


def named_optimizers(optimizers: Sequence[Any]) -> list[tuple[str, Any]]:
    """Optimizers with their names; a wrapper's own optimizer, where one is wrapped."""
    bare = [getattr(optimizer, "optimizer", optimizer) for optimizer in optimizers]
    names = ["optimizer"] if len(bare) == 1 else [f"optimizers[{at}]" for at in range(len(bare))]
    return list(zip(names, bare, strict=True))
