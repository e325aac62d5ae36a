"""`torch.autograd.set_detect_anomaly(True)`: the lines that its exceptions and warnings name."""

from __future__ import annotations

from bench.diagnosis.tools.plain_torch import Torch


def tool() -> Torch:
    """torch with anomaly detection on."""
    return Torch("detect_anomaly", anomaly=True)
