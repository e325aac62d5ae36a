"""The content hash of a snippet, by which the service keeps it once, and by which a client finds its runs unsent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def snippet_digest(entry: str, files: Mapping[str, bytes], *, named: bool = True) -> bytes:
    """SHA-256 over the entry and each file's path and content, in order of paths.

    Each piece has its length in bytes in front, as eight bytes, least significant first, so that none runs into the
    next.

    Args:
        entry: The file that is started, or the module.
        files: Content by path.
        named: Whoever sent it named its file; one that nobody named has another hash, though it is equal.
    """
    digest = hashlib.sha256(b"" if named else b"unnamed")
    for piece in (entry.encode(), *(piece for path in sorted(files) for piece in (path.encode(), files[path]))):
        digest.update(len(piece).to_bytes(8, "little") + piece)
    return digest.digest()
