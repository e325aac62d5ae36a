"""Fill a folder with the wheels that `make gpu` needs on a machine without a network: `python -m tests.gpu.carry`.

    make gpu-carry            fills .gpu-carry, which git ignores
    make gpu                  there, puts those wheels in front of the machine's own packages and runs the parts

The wheels are for CPython 3.12 on x86-64 Linux, of the versions in constraints.txt; torch, CUDA and what torch needs
are the machine's own. pip alone is asked, as it is set up.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / ".gpu-carry"
MOST_BYTES: Final = 60_000_000
PYTHON: Final = "3.12"
PLATFORMS: Final = (
    "manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_24_x86_64", "manylinux_2_17_x86_64",
    "manylinux2014_x86_64", "manylinux_2_12_x86_64", "manylinux2010_x86_64", "manylinux_2_5_x86_64",
    "manylinux1_x86_64", "linux_x86_64",
)  # fmt: skip
"""pip takes a wheel whose tag is one of them; it does not know that a newer system runs an older one's wheels."""

WANTED: Final = (
    "msgspec", "numpy", "rich", "platformdirs",  # the engine
    "sqlalchemy", "alembic", "celery", "kombu", "structlog", "landlockpy", "pyseccomp",  # the worker
    "flask", "pydantic", "waitress", "pygments", "prometheus-client",  # its page
    "pytest", "hypothesis", "psutil",  # what the parts share with the tests
    "hatchling", "setuptools",  # the compiled core
)  # fmt: skip
"""What the parts import; what these need in turn is read from their wheels."""

RIVALS: Final = ("torchlens",)
"""Measured beside us: what they need and constraints.txt has not is left out. wandb alone has 20 MB: not carried."""

LEFT_OUT: Final = frozenset({"torch", "triton", "torchvision", "networkx", "sympy", "mpmath", "fsspec", "filelock"})
"""Not carried: torch and what comes with it."""

_NAME: Final = re.compile(r"^([A-Za-z0-9_.]+?)-([^-]+)(?:-\d[^-]*)?-([^-]+)-([^-]+)-([^-]+)\.whl$")


def normal(name: str) -> str:
    """A distribution's name as constraints.txt has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    """The versions of constraints.txt by name."""
    found: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, equal, version = line.partition("#")[0].partition("==")
        if equal:
            found[normal(name.strip())] = version.partition(";")[0].strip()
    return found


def download(names: list[str], versions: dict[str, str]) -> None:
    """Bring the wheels of these distributions, and nothing that they need.

    Raises:
        SystemExit: one is in no list of versions, or pip found no wheel of it.
    """
    missing = [name for name in names if name not in versions]
    if missing:
        sys.exit(f"gpu-carry: constraints.txt names no version of {', '.join(missing)}; the rest was not loaded")
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary", ":all:", "--python-version", PYTHON, "--implementation", "cp", "--abi", "cp312", "--abi",
        "abi3", "--abi", "none", *platforms, "--dest", str(FOLDER), *(f"{name}=={versions[name]}" for name in names),
    ]  # fmt: skip
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit("gpu-carry: pip did not find a wheel for CPython 3.12 on x86-64 Linux; its last lines say of what")


def needs(wheel: Path) -> set[str]:
    """The distributions that a wheel asks for on that machine, without its extras."""
    import zipfile

    from packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as archive:
        (path,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1]
        text = archive.read(path).decode()
    target = {
        "python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "sys_platform": "linux", "extra": "",
        "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix", "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }  # fmt: skip
    found: set[str] = set()
    for line in text.partition("\n\n")[0].splitlines():
        if line.startswith("Requires-Dist:"):
            wanted = Requirement(line.partition(":")[2].strip())
            if wanted.marker is None or wanted.marker.evaluate(target):
                found.add(normal(wanted.name))
    return found


def wheels() -> dict[str, Path]:
    """The wheels in the folder by the names of their distributions."""
    return {normal(path.name.partition("-")[0]): path for path in sorted(FOLDER.glob("*.whl"))}


def unfit(path: Path) -> str | None:
    """Why a wheel does not fit that machine; None: it does."""
    found = _NAME.match(path.name)
    if found is None:
        return f"{path.name} is not named like a wheel"
    python, abi, platform = found.group(3, 4, 5)
    fits_python = any(tag in ("py3", "py2.py3", "cp312") or abi == "abi3" for tag in (python, *python.split(".")))
    fits_abi = any(tag in ("cp312", "abi3", "none") for tag in abi.split("."))
    fits_platform = platform == "any" or any(tag in PLATFORMS for tag in platform.split("."))
    return None if fits_python and fits_abi and fits_platform else f"{path.name} is for another Python or machine"


def filled(versions: dict[str, str]) -> set[str]:
    """Load what is wanted, what that needs, and so on; the names of all of it."""
    wanted, left_out = {normal(name) for name in (*WANTED, *RIVALS)}, set(LEFT_OUT)
    while True:
        if new := sorted(wanted - wheels().keys()):
            download(new, versions)
        found = {name: needs(path) for name, path in wheels().items() if name in wanted}
        for name in RIVALS:
            absent = found[name] - versions.keys() - left_out
            if absent:
                print(f"{name} needs {', '.join(sorted(absent))}, which constraints.txt does not name: not carried")
            left_out |= absent
        more = set[str]().union(*found.values()) - left_out - wanted
        if not more:
            return wanted
        wanted |= more


def main() -> int:
    """Fill the folder; 0 if all is there, fits, and is small enough."""
    FOLDER.mkdir(exist_ok=True)
    versions = pinned()
    for path in FOLDER.glob("*.whl"):
        if versions.get(normal(path.name.partition("-")[0])) != path.name.split("-")[1]:
            path.unlink()  # of an older constraints.txt: two versions of one would stop the install
    wanted = filled(versions)
    for name, path in wheels().items():
        if name not in wanted:
            path.unlink()
    carried = wheels()
    wrong = [why for path in carried.values() if (why := unfit(path)) is not None]
    size = sum(path.stat().st_size for path in carried.values())
    for why in wrong:
        print(f"gpu-carry: {why}", file=sys.stderr)
    if size > MOST_BYTES:
        print(f"gpu-carry: {size / 1e6:.1f} MB is more than {MOST_BYTES / 1e6:.0f}", file=sys.stderr)
    print(f"{len(carried)} wheels, {size / 1e6:.1f} MB, in {FOLDER.relative_to(ROOT)}")
    return 1 if wrong or size > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
