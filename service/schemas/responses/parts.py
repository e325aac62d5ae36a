"""What the API tells of nodes, backward calls and retention."""

from __future__ import annotations

from dataclasses import dataclass

from service.web.listing import Listing
from store.queries import BackwardCallRow, HeldAfter, NodeRow, PassRow


@dataclass(frozen=True, kw_only=True)
class NodeList(Listing[NodeRow]):
    """Nodes, by number."""


@dataclass(frozen=True, kw_only=True)
class PassList(Listing[PassRow]):
    """What a call did at each node, in order of execution; what it met and did not run comes last."""


@dataclass(frozen=True, kw_only=True)
class BackwardCallFull:
    """One backward call with its passes; their `next_cursor` is for the same address."""

    call: BackwardCallRow
    passes: PassList


@dataclass(frozen=True, kw_only=True)
class RetentionTold:
    """What was held after each backward call, in order, and at the end."""

    items: list[HeldAfter]
