"""A training step under another tool, for comparison; each is used as its own manual says."""

import tempfile
from collections.abc import Callable
from typing import Any

MODULES = {"torchlens": "torchlens", "wandb.watch": "wandb", "detect_anomaly": "torch"}
"""What must be installed for each: the extra `bench`."""

Step = Callable[[], object]
Captured = Callable[[], dict[str, float]]


def under(mode: str, step: Step, model: Any, inputs: Any, optimizer: Any) -> tuple[Step, Captured]:
    """The step under a tool and what it captured of one; the step itself for a mode that is no tool."""
    if mode == "detect_anomaly":
        import torch

        torch.autograd.set_detect_anomaly(True)
        return step, dict
    if mode == "wandb.watch":
        return _watched(step, model)
    if mode == "torchlens":
        return _traced(model, inputs, optimizer)
    return step, dict


def _watched(step: Step, model: Any) -> tuple[Step, Captured]:
    """Histograms of every parameter and gradient at every step, logged to a local file."""
    import wandb

    settings = wandb.Settings(silent=True, x_disable_stats=True, x_disable_meta=True, console="off")
    run = wandb.init(project="bench", mode="offline", dir=tempfile.mkdtemp(), settings=settings)
    wandb.watch(model, log="all", log_freq=1)
    count = len(list(model.parameters()))

    def watched() -> None:
        step()
        run.log({"step": 1})

    return watched, lambda: {"tensors": count, "gradients": count}


def _traced(model: Any, inputs: Any, optimizer: Any) -> tuple[Step, Captured]:
    """Every operation with its output and its gradient."""
    import warnings

    import torchlens
    from torchlens.options import CaptureOptions

    warnings.simplefilter("ignore")
    last: list[Any] = []

    def traced() -> None:
        optimizer.zero_grad()
        options = CaptureOptions(optimizer=optimizer, save_grads=True, backward_ready=True)
        log = torchlens.trace(model, list(inputs), capture=options)
        log.log_backward(log[log.output_layers[0]].out)
        optimizer.step()
        last[:] = [log]

    def captured() -> dict[str, float]:
        (log,) = last
        return {"tensors": len(log.ops), "gradients": sum(1 for op in log.ops if op.has_saved_gradient)}

    return traced, captured
