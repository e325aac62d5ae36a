"""Small attacks that the probe makes on its own sandbox; each is harmless when it succeeds.

The verdict is never the program's: the probe looks at its file, its listener and its victim, and searches what came out
for the word that only a success prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MARK: Final = "CANARY"
"""Text of the file that must not be read, and what a canary prints when something worked that must not."""

FAMILIES: Final[Mapping[str, str]] = {
    # /usr/bin is there in every private root, and Landlock alone keeps a program from listing it
    "files": """
try:
    print("CANARY programs" if __import__("os").listdir("/usr/bin") else "")
except OSError:
    pass
for path in (@FILE@, @FOLDER@ + "/new"):
    try:
        print(open(path).read())
    except OSError:
        pass
    try:
        open(path, "a").write("changed")
    except OSError:
        pass
""",
    "network": """
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        with socket.socket(socket.AF_INET, kind) as one:
            one.settimeout(1)
            one.connect(("127.0.0.1", @PORT@))
            one.send(b"x")
    except OSError:
        pass
""",
    "processes": """
import os
try:
    pid = os.fork()
except OSError:
    pass
else:
    if pid == 0:
        os._exit(0)
    print("CANARY fork")
try:
    os.execv("/usr/bin/true", ["true"])
except OSError:
    pass
""",
    "signals": """
import os, signal
for pid in (@VICTIM@, os.getppid()):
    try:
        os.kill(pid, signal.SIGTERM) if pid > 1 else None
    except OSError:
        pass
""",
    "secrets": """
for pid in (@SUPERVISOR@, 1):
    for name in ("environ", "maps"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read()
        except OSError:
            continue
        import os
        if pid != os.getpid() and text:
            print("CANARY", pid, name)
""",
    "native": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"none", b"/nowhere", None, ctypes.c_ulong(0), None) < 0 and ctypes.get_errno() == 2:
    print("CANARY mount was looked at")
for what, result in (
    ("ptrace", libc.ptrace(16, @VICTIM@, 0, 0)),
    ("unshare", libc.unshare(0x10000000)),
    ("keyctl", libc.syscall(250, 0, -3, 1)),
    ("memfd", libc.memfd_create(b"x", 0)),
):
    if result >= 0:
        print("CANARY", what)
""",
    "memory": """
held = []
while True:
    held.append(bytearray(64 << 20))
""",
}
"""By family; the words in @...@ are the probe's to fill in."""

GOOD: Final = """
import torch
x = torch.arange(3.0, requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
"""
GOOD_SAYS: Final = b"[0.0, 2.0, 4.0]\n"
