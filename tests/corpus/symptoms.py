"""Whether plain torch shows what the claims of a corpus with sidecars say: the faulty programs do, the repaired do not.

usage: python -m tests.corpus.symptoms [--corpus public|second|threads|threads2|round5|round6|round7|round8|round9|round10|round11] [--folder FOLDER] [--only TEXT]

Each program runs in a fork of this process, without capture. A claim is proved if `bad.py` raises what it must, or its
`symptom_check` is true in the end, and `good.py` ends without an exception, its `symptom_check` false. Correct programs
must end without one. Prints what is not so; the exit status is 1 then.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.corpus.cases import OWN, WITH_SIDECARS
from tests.corpus.runner import NAME, SECONDS


def unproved(folder: Path, only: str = "") -> Iterator[str]:
    """Each claim below `folder` that plain torch does not show, and each correct program that raises."""
    for path in sorted(folder.glob("cases/*/case.json")):
        told = json.loads(path.read_text())
        if only in told["id"]:
            bad, good = (ended(path.with_name(name), told["symptom_check"]) for name in ("bad.py", "good.py"))
            if not (_shown(told, bad) and good["raised"] is None and good["check"] is not True):
                yield f"{told['id']}: bad {bad}, good {good}"
    for path in sorted(folder.glob("clean/*.py")):
        if only in path.stem and (end := ended(path))["raised"] is not None:
            yield f"{path.stem}: {end}"


def _shown(told: dict[str, Any], end: dict[str, Any]) -> bool:
    if told["raises"] is None:
        return end["raised"] is None and end["check"] is True
    kind, _, message = (end["raised"] or "").partition(": ")
    return kind == told["raises"] and (told["raises_message"] or "") in message


def ended(path: Path, check: str | None = None) -> dict[str, Any]:
    """How a program ended: what it `raised`, as "Type: message", and what `check` is over its globals then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(path.read_text(), check, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said or '{"raised": "killed", "check": null}')


def _run(text: str, check: str | None, writing: int) -> None:
    signal.alarm(SECONDS)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    with contextlib.suppress(BaseException), tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.write(writing, json.dumps(_end(text, check)).encode())
    os._exit(0)


def _end(text: str, check: str | None) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    names: dict[str, Any] = {"__name__": "__main__", "__file__": NAME}
    try:
        exec(compile(text, NAME, "exec"), names)
    except BaseException as error:
        return {"raised": f"{type(error).__name__}: {error}", "check": None}
    return {"raised": None, "check": bool(eval(check, names)) if check else None}


def main() -> int:
    """Prove the claims of the corpora that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", choices=WITH_SIDECARS, default="threads")
    parser.add_argument("--folder", type=Path, help="a set of yours, in the same format")
    parser.add_argument("--only", default="", help="cases whose id contains this")
    asked = parser.parse_args()
    import torch
    import torch._dynamo
    import torch.distributed
    import torch.optim  # what programs load lazily is loaded once

    torch.set_num_threads(1)
    failed = list(unproved(asked.folder or OWN / asked.corpus, asked.only))
    print("\n".join(failed) if failed else "every claim is proved")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
