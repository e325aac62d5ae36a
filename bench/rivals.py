"""A training step under another tool, for comparison; each is used as its own manual says."""

import atexit
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULES = {"torchlens": "torchlens", "wandb.watch": "wandb", "detect_anomaly": "torch", "hooks": "torch"}
"""What must be installed for each: the extra `bench`."""

HOOKS_EVERY = 10
HOOKS_BINS = 64

Step = Callable[[], object]
Captured = Callable[[], dict[str, float]]


def wrap_step(mode: str, step: Step, model: Any, inputs: Any, optimizer: Any) -> tuple[Step, Captured]:
    """The step under a tool and what it captured of one; the step itself for a mode that is no tool."""
    if mode == "detect_anomaly":
        import torch

        torch.autograd.set_detect_anomaly(True)
        return step, dict
    if mode == "wandb.watch":
        return _watched(step, model)
    if mode == "hooks":
        return _hooked(step, model)
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

    def watched() -> object:
        loss = step()
        run.log({"step": 1})
        return loss

    return watched, lambda: {"tensors": count, "gradients": count}


def _hooked(step: Step, model: Any) -> tuple[Step, Captured]:
    """Mean, least, most and a histogram of each module's output and each parameter's gradient, to a local file.

    What a debugger of training jobs with hooks does, as SageMaker's: a forward hook on every module, a gradient hook on
    every parameter, reductions alone, every `HOOKS_EVERY` steps, a JSON file for each step that is saved.
    """
    folder = Path(tempfile.mkdtemp())
    rows: dict[str, Any] = {}
    last: list[int] = [0, 0]  # steps begun, values saved in the step that was saved last

    def reduced(name: str, tensor: Any) -> None:
        values = tensor.detach().float()
        least, mean, most = values.min().item(), values.mean().item(), values.max().item()
        counts = values.histc(HOOKS_BINS, least, most).int().tolist()
        rows[name] = {"min": least, "mean": mean, "max": most, "histogram": counts}

    def write() -> None:
        if rows:
            (folder / f"{last[0]:09}.json").write_text(json.dumps(rows))
            last[1] = len(rows)
            rows.clear()

    def saves() -> bool:
        return (last[0] - 1) % HOOKS_EVERY == 0

    def output(name: str) -> Callable[..., None]:
        def take(_module: Any, _inputs: Any, given: Any) -> None:
            if saves():
                for at, value in enumerate(given if isinstance(given, tuple) else (given,)):
                    if hasattr(value, "histc") and value.is_floating_point():
                        reduced(f"output {name} {at} {len(rows)}", value)

        return take

    def gradient(name: str) -> Callable[[Any], None]:
        return lambda grad: reduced(f"gradient {name}", grad) if saves() else None

    for name, module in model.named_modules():
        module.register_forward_hook(output(name))
    for name, parameter in model.named_parameters():
        parameter.register_hook(gradient(name))
    atexit.register(write)

    def hooked() -> object:
        write()
        last[0] += 1
        return step()

    count = len(list(model.parameters()))
    return hooked, lambda: {"tensors": last[1] - count, "gradients": count}


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
