"""`Trainer(callbacks=[WatchCallback()])`: a Lightning training, watched from its first step to its last."""

from __future__ import annotations

from typing import Any

from backprobe.integrations.attachment import Attachment, named_optimizers

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback  # pyright: ignore[reportMissingImports]  # its name before 2.0


class WatchCallback(Callback):  # pyright: ignore[reportGeneralTypeIssues]  # of one package or the other
    """Enters `backprobe.watch` when training starts: the optimizers are there, and the sanity check is over.

    Args:
        options: As `backprobe.watch` takes them: `url=`, `every=`, `ranks=`, `on_finding=`.

    Raises:
        ValueError: an option cannot be; the message says what can.
    """

    def __init__(self, **options: Any) -> None:
        self._attachment = Attachment(options)

    @property
    def watching(self) -> Any:
        """The watch: `.findings`, `.record`, `.health()`; None before the training has started."""
        return self._attachment.watching

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Lightning's: begin."""
        self._attachment.begin([("model", pl_module), *named_optimizers(trainer.optimizers)])

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - Lightning's arguments
        """Lightning's: end."""
        self._attachment.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002 - the same
        """Lightning's: end, with what ended the training."""
        self._attachment.end(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:  # noqa: ARG002 - the same
        """Lightning's, last of all: end, if nothing else did."""
        self._attachment.end()
