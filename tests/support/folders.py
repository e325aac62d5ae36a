"""A folder that programs of every uid see: what root's tests have for themselves is closed to a sandboxed run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody can look into, gone with the test."""
    folder = Path(tempfile.mkdtemp(prefix="backprobe-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
