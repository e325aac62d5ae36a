"""The scripts and styles that `make web` bundles for the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

DIST: Final = Path(__file__).parent / "dist"


class AssetsMissing(Exception):
    """They were not built: this is a checkout without them, or was installed from one without Node.js at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """Texts that go into the file as they are."""

    script: str
    style: str


def assets(dist: Path = DIST) -> Assets:
    """Read them.

    Raises:
        AssetsMissing: one of them is not there.
    """
    try:
        return Assets(script=(dist / "pages.js").read_text("utf-8"), style=(dist / "site.css").read_text("utf-8"))
    except OSError:
        raise AssetsMissing(
            "the scripts of the report were not built: run `make web` in the checkout, and install from there; "
            "an install makes them itself where Node.js 20.19 or newer and npm are on the path"
        ) from None
