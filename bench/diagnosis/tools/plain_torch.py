"""torch alone: the lines of the program that its exceptions and warnings name."""

from __future__ import annotations

from collections.abc import Sequence

from bench.diagnosis.tool_report import ToolReport
from tests.corpus.records import Records


class Torch:
    """torch as it is, or under `torch.autograd.detect_anomaly`."""

    def __init__(self, name: str, *, anomaly: bool) -> None:
        self.name = name
        self._anomaly = anomaly
        self._records = Records()

    def report(self, source: str) -> Sequence[ToolReport]:
        """Each line that is named, whatever is said of it."""
        return [ToolReport(line=line) for line, _text in self._records.plain(source, anomaly=self._anomaly)]

    def close(self) -> None:
        """End the process that runs programs."""
        self._records.__exit__()


def tool() -> Torch:
    """Plain torch."""
    return Torch("plain torch", anomaly=False)
