"""Backprobe: why is this gradient None, this graph alive, this loss NaN; which line to change. Torch stays unloaded."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from backprobe.capture import run_source as run
    from backprobe.job_watch import watch
    from backprobe.record import Record
    from backprobe.rules import Finding, Judgement, judge

__version__ = "0.1.0"
__all__ = ["Finding", "Judgement", "Record", "__version__", "judge", "load", "load_ipython_extension", "run", "watch"]

_HOMES: Final = {
    "Finding": ("backprobe.rules", "Finding"),
    "Judgement": ("backprobe.rules", "Judgement"),
    "Record": ("backprobe.record", "Record"),
    "judge": ("backprobe.rules", "judge"),
    "run": ("backprobe.capture", "run_source"),
    "watch": ("backprobe.job_watch", "watch"),
}
"""Where each public name lives; it is imported when it is first used, so that `import backprobe` stays light."""


def load(path: str | Path) -> Record:
    """Read a record file, as `backprobe run --save FILE` writes it.

    Raises:
        OSError: the file cannot be read.
        backprobe.record.BadRecord: it is not a record; the message says at what it failed.
    """
    from backprobe.record import loads

    return loads(Path(path).read_bytes())


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext backprobe`: adds `%%backprobe` to a notebook."""
    from backprobe.notebook import load as load_magics

    load_magics(shell)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'backprobe' has no attribute {name!r}")
    return getattr(import_module(home[0]), home[1])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
