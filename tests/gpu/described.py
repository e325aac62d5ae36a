"""Tell Python what commands this checkout has, where it is not installed: `python -m tests.gpu.described FOLDER`.

The folder, which is on the import path, gets the metadata that pip would have written; no package is copied.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def describe(folder: Path) -> Path:
    """Write the project's name, version and entry points beside the packages of `folder`; the metadata's folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    written = folder / f"{project['name']}-0.dist-info"
    written.mkdir(parents=True)
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    groups = project["entry-points"] | {"console_scripts": project["scripts"]}
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in names.items())
        for group, names in groups.items()
    ]
    (written / "entry_points.txt").write_text("\n".join(lines))
    return written


if __name__ == "__main__":
    describe(Path(sys.argv[1]))
