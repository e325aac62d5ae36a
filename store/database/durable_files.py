"""Make a file outlive a power cut: its bytes, and its name in the folder."""

from __future__ import annotations

import os
from pathlib import Path


def sync_to_disk(path: Path) -> None:
    """Write what the kernel still holds of a file, or of a folder's entries, to the disk.

    Raises:
        OSError: the disk refused it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
