"""Warnings as the program's own filters show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from backprobe.capture.output.text import cut, name
from backprobe.capture.tracking.exceptions import short_path
from backprobe.record import Warned
from backprobe.record.families import family_of

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_TORCHS: Final = "torch/"
"""In the path of a warning that torch's Python files gave; of those from its C++ the text tells."""


class Warnings:
    """Counts warnings by category, text and place."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._rows: dict[tuple[str, str, str, int, int | None], Warned] = {}

    def record_warning(self, warning: Any) -> None:
        """Record a warning that passed the filters; `warning` is the `warnings.WarningMessage`."""
        recorder = self._recorder
        category = name(warning.category.__name__)
        message, line = cut(str(warning.message)), int(warning.lineno)
        user = recorder.sites.is_user_file(warning.filename)
        site = recorder.sites.at_line(warning.filename, line) if user else recorder.calling_site()
        key = (category, message, warning.filename, line, site)
        row = self._rows.get(key)
        if row is not None:
            row = msgspec.structs.replace(row, count=row.count + 1)
        elif len(self._rows) >= recorder.options.caps.warnings:
            recorder.writer.cut("warnings", "more distinct warnings than are kept", recorder.options.caps.warnings)
            return
        else:
            row = Warned(
                n=len(self._rows),
                category=category,
                message=message,
                path=short_path(warning.filename, recorder.sites.folder),
                line=line,
                site=site,
                moment=recorder.moments.now() if recorder.moments.last >= 0 else None,
                family=family_of(message),
            )
            if row.family is not None or _TORCHS in row.path:
                recorder.sampler.went_wrong("warning")
        self._rows[key] = row
        recorder.writer.add("warned", row)
