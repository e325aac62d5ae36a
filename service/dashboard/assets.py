"""The built scripts of the pages: `make web` bundles web/src into static/dist, and a manifest names what it made.

Without them the pages are whole and readable, and say in their foot what is missing; a wheel is never built without.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

DIST: Final = Path(__file__).parent / "static" / "dist"
REMEDY: Final = "make web"
"""What brings them."""


def asset(name: str, dist: Path = DIST) -> str | None:
    """Find the built file, below `static`, of a source's name: `dist/pages-3f2a.js`; None if it was not built."""
    try:
        named = json.loads((dist / "manifest.json").read_text())
    except (OSError, ValueError):
        return None
    found = named.get(name)
    return f"dist/{found}" if isinstance(found, str) and (dist / found).is_file() else None
