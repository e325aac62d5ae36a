"""Runs programs under capture, each in a fork of one warm process: a line of JSON in, the path of a record out.

Started by `conftest.py`; the process that starts it stays without torch.
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    from backprobe.capture import warm

    warm()
    print("warm", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(asked)
        _pid, status = os.waitpid(child, 0)
        print(json.dumps({"status": status}), flush=True)


def _run(asked: dict) -> None:
    from backprobe.capture import Options, run_files
    from backprobe.record.codec import MAGIC

    signal.alarm(asked["seconds"])
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    code = 1
    with contextlib.suppress(BaseException), Path(asked["record"]).open("wb") as record:
        record.write(MAGIC)
        options = Options(tier=asked["tier"], seed=asked["seed"])
        run_files(asked["files"], asked["entry"], asked["argv"], options, record.write)
        code = 0
    os._exit(code)


if __name__ == "__main__":
    main()
