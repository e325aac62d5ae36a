"""Whether plain torch shows what the claims of a set say: the faulty programs do, the repaired do not.

usage: python -m tests.corpus.symptoms [--corpus SET] [--folder FOLDER] [--only TEXT]

Each program runs in a fork of this process, without capture. A claim is proved if the faulty program raises what it must, or
its `symptom_check` is true in the end, and the repaired one ends without an exception, its `symptom_check` false. Correct
programs must end without one. Prints what is not so; the exit status is 1 then. The cases of `own` claim no symptom.
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

from tests.corpus.cases import CORPORA, SETS, Case, Corpus, load_corpus
from tests.corpus.runner import NAME, SECONDS


def find_unproved(corpus: Corpus, only: str = "") -> Iterator[str]:
    """Describe each claim that plain torch does not show, and each correct program that raises."""
    for case in corpus.cases:
        if only in case.id:
            bad, good = (run_program(text, case.symptom_check) for text in (case.bad, case.good))
            if not (_shows_symptom(case, bad) and good["raised"] is None and good["check"] is not True):
                yield f"{case.id}: faulty {bad}, repaired {good}"
    for program in corpus.correct:
        if only in program.name and (end := run_program(program.text))["raised"] is not None:
            yield f"{program.name}: {end}"


def _shows_symptom(case: Case, end: dict[str, Any]) -> bool:
    if case.raises is None:
        return end["raised"] is None and end["check"] is True
    kind, _, message = (end["raised"] or "").partition(": ")
    return kind == case.raises and (case.raises_message or "") in message


def run_program(text: str, check: str | None = None) -> dict[str, Any]:
    """Run a program; return what it `raised`, as "Type: message", and the value of `check` over its final globals."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(text, check, writing)
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
    parser.add_argument("--corpus", choices=[name for name in SETS if name != "own"], default="threads")
    parser.add_argument("--folder", type=Path, help="a set of yours, in the same format")
    parser.add_argument("--only", default="", help="cases whose id contains this")
    asked = parser.parse_args()
    import torch
    import torch._dynamo
    import torch.distributed
    import torch.optim  # what programs load lazily is loaded once

    torch.set_num_threads(1)
    failed = list(find_unproved(load_corpus(asked.folder or CORPORA / asked.corpus), asked.only))
    print("\n".join(failed) if failed else "every claim is proved")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
