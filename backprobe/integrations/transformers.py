"""`Trainer(callbacks=[WatchCallback()])`: transformers' Trainer, watched from its first step to its last."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from backprobe.integrations.attachment import Attachment, named_optimizers


class WatchCallback(TrainerCallback):
    """Enters `backprobe.watch` when training begins.

    Gradients are seen where backward calls and the optimizer's steps are: `on_pre_optimizer_step` comes after clipping.
    The Trainer has no callback for an exception: a training that raises is watched until the next one begins or the
    process ends, and what was recorded is sent.

    Args:
        options: As `backprobe.watch` takes them: `url=`, `every=`, `ranks=`, `on_finding=`.

    Raises:
        ValueError: an option cannot be; the message says what can.
    """

    def __init__(self, **options: Any) -> None:
        self._attachment = Attachment(options)

    @property
    def watching(self) -> Any:
        """The watch: `.findings`, `.record`, `.health()`; None before the training has begun."""
        return self._attachment.watching

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ARG002 - Trainer's
        """Trainer's: begin."""
        self._attachment.end()  # of a training that raised
        optimizer = given.get("optimizer")
        watched = [("model", given.get("model")), *named_optimizers([] if optimizer is None else [optimizer])]
        self._attachment.begin(watched)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ARG002 - Trainer's
        """Trainer's: end."""
        self._attachment.end()
