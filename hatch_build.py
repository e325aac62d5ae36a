"""Builds `backprobe.capture._core` from every C file in its folders: for a wheel, or in place for this checkout.

1. The extension is optional: without a compiler the install goes on, and the core's Python twin serves.
2. A file is compiled again only if it, or any header, is newer than its object.
3. The pages' scripts are bundled where they are missing and Node.js is there; without them the build goes on too,
   unless BACKPROBE_BUILD_REQUIRE=assets demands them, as a release does.
4. What C and Python both list (the flags of a tensor's state) is written into a header from the Python list.

usage: python hatch_build.py        build in place (`make core`); exits with 1 and says why if that fails
"""

from __future__ import annotations

import importlib.machinery
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCES = "backprobe/capture/_core_src"
MODULE = "backprobe/capture/_core"
STATE_FLAGS = "backprobe/record/state_flags.py"
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
GNU_FLAGS = ["-O3", "-std=gnu11", "-Wall", "-Wextra", "-Werror=implicit-function-declaration", "-fvisibility=hidden"]
"""Never -ffast-math: linked with it, a library switches denormal numbers off in the whole process of the user."""


def state_flags_header(root: Path = ROOT) -> str:
    """Convert the table of `backprobe/record/state_flags.py` to C: lists to put a macro on, and constants.

    BP_FIRST_FLAGS(X)   X(is_leaf) X(requires_grad) ...   at their place in a snapshot's row
    BP_LATER_FLAGS(X)                                     at its end
    BP_UNTRACKED_is_leaf = 1                              its value where autograd keeps nothing of a tensor
    """
    flags = runpy.run_path(str(root / STATE_FLAGS))["STATE_FLAGS"]
    first, later = (
        " ".join(f"X({flag.name})" for flag in flags if (flag.since == 1) == is_first) for is_first in (True, False)
    )
    constants = ", ".join(f"BP_UNTRACKED_{flag.name} = {int(flag.untracked)}" for flag in flags)
    return (
        f"/* Written by hatch_build.py from {STATE_FLAGS}, which says what each is. */\n\n"
        "#ifndef BACKPROBE_STATE_FLAGS_H\n#define BACKPROBE_STATE_FLAGS_H\n\n"
        f"#define BP_FIRST_FLAGS(X) {first}\n#define BP_LATER_FLAGS(X) {later}\n"
        "#define BP_STATE_FLAGS(X) BP_FIRST_FLAGS(X) BP_LATER_FLAGS(X)\n\n"
        f"enum {{ {constants}, BP_FLAGS = {len(flags)} }};\n\n#endif\n"
    )


def _write_headers(root: Path, folder: Path) -> Path:
    """Write the headers that are made from Python lists; one that says what it said is left alone.

    Returns:
        Their folder.
    """
    generated = folder / "generated"
    generated.mkdir(exist_ok=True)
    header, text = generated / "state_flags.h", state_flags_header(root)
    if not header.exists() or header.read_text() != text:
        header.write_text(text)
    return generated


def build_core(root: Path = ROOT) -> Path:
    """Compile what has changed, and link.

    Returns:
        The extension, in the folder `build`.

    Raises:
        Exception: No compiler, no Python headers, or an error in a source; the text says which.
    """
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    folder = root / "build" / f"core{SUFFIX.rpartition('.')[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"_core{SUFFIX}"
    generated = _write_headers(root, folder)
    includes = [generated, root / SOURCES, *(path for path in (root / SOURCES).rglob("*") if path.is_dir())]

    class OneByOne(build_ext):
        """The platform's compiler, as setuptools finds it, with a memory of what it compiled."""

        def build_extension(self, ext: Any) -> None:
            unix = self.compiler.compiler_type == "unix"
            headers = max(path.stat().st_mtime for folder in includes for path in folder.glob("*.h"))

            def compiled(source: str) -> str:
                target = folder / (Path(source).stem + self.compiler.obj_extension)
                if not target.exists() or target.stat().st_mtime < max(Path(source).stat().st_mtime, headers):
                    with tempfile.TemporaryDirectory(dir=folder) as fresh:
                        flags = GNU_FLAGS if unix else ["/O2", "/std:c11"]
                        made = self.compiler.compile(
                            [source],
                            fresh,
                            include_dirs=[*map(str, includes), *self.include_dirs],
                            extra_postargs=flags,
                        )
                        Path(made[0]).replace(target)
                return str(target)

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = list(pool.map(compiled, ext.sources))
            self.compiler.link_shared_object(
                objects,
                str(library),
                libraries=["m", "pthread"] if unix else self.get_libraries(ext),
                library_dirs=self.library_dirs,
                extra_postargs=[] if unix else ["/EXPORT:PyInit__core"],
            )

    sources = [str(path) for path in sorted((root / SOURCES).rglob("*.c"))]
    command = OneByOne(Distribution({"name": "backprobe", "ext_modules": [Extension("_core", sources)]}))
    command.build_lib = command.build_temp = str(folder)
    command.ensure_finalized()
    command.run()
    return library


def put_in_place(root: Path = ROOT) -> Path:
    """Build and move the extension beside its Python modules, in one step for whoever has the old one loaded."""
    library = build_core(root)
    target = root / (MODULE + SUFFIX)
    library.replace(target)
    return target


ASSETS = ("service/dashboard/static/dist/manifest.json", "backprobe/show/html_report/dist/pages.js")
"""What `make web` bundles; git-ignored, and in every wheel and sdist of a release."""


def missing_assets(root: Path = ROOT) -> list[str]:
    """Those of the pages' scripts that were not built."""
    return [path for path in ASSETS if not (root / path).is_file()]


REQUIRE = "BACKPROBE_BUILD_REQUIRE"
"""Environment variable of a build: `assets`, where it is to fail rather than go on without the pages' scripts."""

IMPATIENT = {"WEB_TRIES": "1", "npm_config_fetch_retries": "0", "npm_config_fetch_timeout": "30000"}
"""For `.ci/web`: an install without a network does not wait for it."""


def make_assets(root: Path = ROOT) -> str:
    """Bundle the pages' scripts as `make web` does, with the Node.js of this machine.

    Returns:
        The last line of what went wrong; empty: nothing did.
    """
    if not (root / ".ci" / "web").is_file():
        return "this is no checkout"
    try:
        done = subprocess.run(
            ["sh", ".ci/web"],
            cwd=root,
            env=os.environ | IMPATIENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"sh: {error.strerror}"
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return "" if done.returncode == 0 else (lines or [f"exit status {done.returncode}"])[-1]


def find_assets(root: Path, warn: Callable[[str], None]) -> None:
    """See to it that the pages' scripts are there, or warn that the build goes on without them.

    Raises:
        RuntimeError: they cannot be made, and BACKPROBE_BUILD_REQUIRE demands them; or it holds another word.
    """
    wanted = os.environ.get(REQUIRE, "")
    if wanted not in ("", "assets"):
        raise RuntimeError(f"{REQUIRE} is {wanted!r}: it is `assets`, or not set")
    if not missing_assets(root):
        return
    why = make_assets(root)
    if not (missing := missing_assets(root)):
        return
    said = f"the pages' scripts were not built ({', '.join(missing)} missing; {why})"
    if wanted:
        raise RuntimeError(f"{said}: run `make web` first, or unset {REQUIRE}")
    warn(f"{said}: going on without them. The pages are whole without scripts; `--format html` needs them.")


class CoreBuildHook(BuildHookInterface):
    """Adds the extension to a wheel, and the pages' scripts; an editable install gets the extension in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the extension, or say in one line why there is none; the same for the pages' scripts."""
        root = Path(self.root)
        if version != "editable":
            find_assets(root, self.app.display_warning)
        if self.target_name != "wheel":
            return
        try:
            library = put_in_place(root) if version == "editable" else build_core(root)
        except (Exception, SystemExit) as error:  # distutils ends the process for some of its errors
            self.app.display_warning(f"no compiled core, its Python twin will serve: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version != "editable":
            build_data["force_include"][str(library)] = MODULE + SUFFIX


if __name__ == "__main__":
    try:
        print(put_in_place().relative_to(ROOT))
    except (Exception, SystemExit) as error:
        sys.exit(f"the core was not built: {error}")
