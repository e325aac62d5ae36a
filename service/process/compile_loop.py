"""Compile strangers' programs, one after the other, in a process with little memory and little time: a script.

    stdin:  lengths of path and text (two unsigned 64-bit integers), seconds of CPU time, path, text, both in UTF-8
    stdout: one line of JSON: `fault` is a message or null, `line` its line or null, `seconds` of CPU time that it took,
            `last` is true if the process ends

It imports nothing but the standard library, and runs as `python -I -S`, so that it starts in a few milliseconds. Its
parent is `service.process.syntax_checker`; it ends when its parent closes stdin.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import struct
import sys
import time
import warnings
from typing import Any

ADDRESS_BYTES = 512 << 20
"""Of address space. A program of 150,000 words takes about 100 MiB."""

LARGE_BYTES = ADDRESS_BYTES // 2
"""Resident memory beyond which a MemoryError means this limit; below it, the stack of CPython's parser is full."""

CPU_SECONDS = 1.0
"""Of CPU time for all files of one program, after which SIGPROF ends the process. 150,000 words take 0.3 s."""

HEAD = struct.Struct("<QQd")


def _peak_bytes() -> int:
    """Return the most resident memory of this program; `ru_maxrss` would count that of the process that started it."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:  # noqa: PTH123 - pathlib takes longer to import
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def answer(path: str, text: str) -> dict[str, Any]:
    """Compile one program and describe its fault; None: it has none, or its memory was used up before one was found."""
    try:
        compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"fault": str(error.msg), "line": error.lineno}
    except (RecursionError, MemoryError):
        if _peak_bytes() > LARGE_BYTES:
            return {"fault": None}
        return {"fault": "nested more deeply than Python can compile"}
    except (ValueError, OverflowError) as error:
        return {"fault": str(error)[:200]}
    return {"fault": None}


def main() -> None:
    """Answer until stdin ends, or until one program took much memory: the next process begins with none."""
    warnings.simplefilter("ignore")  # an invalid escape is the program's business
    for limit, most in ((resource.RLIMIT_AS, ADDRESS_BYTES), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(limit, (most, most))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    while len(head := sys.stdin.buffer.read(HEAD.size)) == HEAD.size:
        of_path, of_text, seconds = HEAD.unpack(head)
        path = sys.stdin.buffer.read(of_path).decode("utf-8", "surrogatepass")
        text = sys.stdin.buffer.read(of_text).decode("utf-8", "surrogatepass")
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        found = answer(path, text)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found["seconds"] = time.process_time() - began
        last = _peak_bytes() > LARGE_BYTES
        sys.stdout.write(f"{json.dumps({'line': None, **found, 'last': last})}\n")
        sys.stdout.flush()
        if last:
            return


if __name__ == "__main__":
    main()
