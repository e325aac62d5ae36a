"""`with watch(accelerator, model, optimizer):` around a loop that Accelerate has prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backprobe.job_watch import Watching
from backprobe.job_watch import watch as watch_block

if TYPE_CHECKING:
    from accelerate import Accelerator


def watch(accelerator: Accelerator, *prepared: Any, **options: Any) -> Watching:
    """Watch what `accelerator.prepare` gave back: models without their wrappers, optimizers as torch has them.

    Args:
        accelerator: That has prepared them.
        prepared: Models and optimizers.
        options: As `backprobe.watch` takes them.

    Raises:
        TypeError, ValueError: as of `backprobe.watch`.
    """
    from accelerate.optimizer import AcceleratedOptimizer

    things: list[Any] = []
    names: list[str] = []
    for thing in prepared:
        is_model = hasattr(thing, "named_modules")
        bare = thing.optimizer if isinstance(thing, AcceleratedOptimizer) else thing
        things.append(accelerator.unwrap_model(bare) if is_model else bare)
        kind = "model" if is_model else "optimizer"
        others = sum(name.startswith(kind) for name in names)
        names.append(f"{kind}{others}" if others else kind)
    return watch_block(*things, **options).set_names(names)
