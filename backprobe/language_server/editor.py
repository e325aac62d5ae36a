"""The messages that an editor receives."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lsprotocol import types as lsp


class Editor(Protocol):
    """What a session tells its editor."""

    def publish(self, uri: str, version: int | None, found: list[lsp.Diagnostic]) -> None:
        """Show these diagnostics of a document, in place of those before."""

    def refresh(self) -> None:
        """Ask for hints and lenses again."""

    def status(self, state: str, message: str) -> None:
        """Say in one line how things stand: `idle`, `running`, `trouble` or `untrusted`."""

    def trouble(self, message: str) -> None:
        """Say what could not be done; the same thing again is not shown again."""

    def progress(self, title: str) -> AbstractAsyncContextManager[None]:
        """Show that something goes on, with a way to cancel it."""
        ...
