"""One run on its way to the service: made, its pieces in order, its end; one request at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from backprobe.recorder import requests
from backprobe.recorder.connection import Connection
from backprobe.recorder.pieces import Piece
from backprobe.recorder.requests import Reply
from backprobe.run_id import new_run_id

MADE_AS: Final = "made-as"
"""The label with the id that a run was to have: its time was too far from the service's."""


class Delivery:
    """What of a run has been taken, and what is still to be sent. For one thread.

    Args:
        connection: To the service.
        run: Public id of the run.
        body: What makes the run, as `PUT /v1/runs/{run}` takes it.

    Attributes:
        pieces: Not taken yet, in order. end: how the job ended, to be told when all pieces are taken; None: it goes on.
        begun: The service has the run. ended: it has its end. stopped: why nothing more is sent; None: more is.
        wanted: It is no use to keep what was not sent: the service wants no more of this run.
    """

    def __init__(self, connection: Connection, run: str, body: Mapping[str, Any]) -> None:
        self.run, self.body = run, dict(body)
        self.pieces: deque[Piece] = deque()
        self.end: Mapping[str, Any] | None = None
        self.begun = self.ended = False
        self.stopped: str | None = None
        self.wanted = True
        self.frames = self.requests = 0
        self._connection = connection

    @property
    def waits(self) -> bool:
        """Something can be sent."""
        if self.stopped is not None or self.ended:
            return False
        return bool(self.pieces) or self.end is not None

    def advance(self) -> Reply:
        """Send the next request; what came of it is noted here, and told. Only while something `waits`."""
        self.requests += 1
        if not self.begun:
            reply = requests.begin(self._connection, self.run, self.body)
            self.begun = reply.meaning == "taken"
        elif self.pieces:
            reply = self._send_piece(self.pieces[0])
        else:
            reply = requests.end(self._connection, self.run, self.end or {})
            self.ended = reply.meaning == "taken"
        if reply.meaning == "clock" and self._renamed(reply):
            return Reply(meaning="taken")
        if reply.meaning in ("refused", "clock", "missing"):
            self.stopped = reply.why
        elif reply.meaning == "over":
            self.stopped, self.wanted = reply.why, False
        return reply

    def _send_piece(self, piece: Piece) -> Reply:
        try:
            held = piece.read()
        except OSError as error:
            return Reply(meaning="refused", why=f"{piece.path} cannot be read ({error.strerror})")
        reply = requests.frames(self._connection, self.run, piece.first, held)
        if reply.meaning == "taken":
            self.frames += piece.count
        return reply

    def _renamed(self, reply: Reply) -> bool:
        """Take an id of the service's time; False: not a second time, and not if the service told no time."""
        if reply.server_ms is None or self.begun or MADE_AS in self.body.get("labels", {}):
            return False
        self.body["labels"] = {**self.body.get("labels", {}), MADE_AS: self.run}
        self.run = new_run_id(reply.server_ms)
        return True
