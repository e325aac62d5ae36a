"""Sends deliveries that are due: beside the reaper, on separate threads, so that a slow receiver delays no lease.

One thread looks and lends, a few post. Each delivery is claimed, posted with no transaction open, and settled; whoever
dies in between gives it back with its lease. Several senders share the work.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from backprobe import __version__
from store.database.session import Database
from store.webhooks import chat_messages, deliveries, signing
from store.webhooks.deliveries import Due, Try
from store.webhooks.destination import Allowed, DestinationRefused, Resolve, resolve_host
from workers.upkeep.http_post import Answer, NoAnswer, post

TURN_SECONDS: Final = 1.0
"""Between two looks while nothing is due."""

SECONDS: Final = 10.0
"""That a try may take, from the connection to the end of what is read of the answer."""

SEATS: Final = 8
"""Tries at once."""

SEATS_OF_ONE: Final = 2
"""Of these, for one webhook: one that hangs leaves the others their turn."""

SEATS_OF_TENANT: Final = 6
"""Of these, for all webhooks of a tenant, who may have many that hang."""

_log: Final = logging.getLogger(__name__)


class Sender:
    """Sends what is due until it is stopped.

    Args:
        database: Where deliveries are.
        secret: The server's; signs through `store.webhooks.signing`.
        allowed: Ports that may be posted to, and networks although they are not global.
        public_url: Where people open the pages; None: messages have no link.
        resolve: Resolves names.
        tls: What certificates are demanded; None: those that the machine trusts.
        seconds: For one try.
    """

    def __init__(
        self,
        database: Database,
        secret: bytes,
        allowed: Allowed,
        *,
        public_url: str | None = None,
        resolve: Resolve = resolve_host,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._database, self._secret, self._allowed = database, secret, allowed
        self._public_url, self._resolve, self._seconds = public_url, resolve, seconds
        self._tls = tls or ssl.create_default_context()
        self._counting = threading.Lock()
        self._busy: Counter[int] = Counter()
        self._busy_tenants: Counter[int] = Counter()
        self._freed = threading.Event()

    def serve(self, stop: threading.Event) -> None:
        """Work until `stop` is set, and end what is under way."""
        with ThreadPoolExecutor(SEATS, thread_name_prefix="sender") as pool:
            while not stop.is_set():
                self._freed.clear()
                due = self._claim_delivery()
                if due is not None:
                    pool.submit(self._settle_delivery, due)
                else:
                    self._freed.wait(TURN_SECONDS)

    def turn(self) -> int:
        """Send what is due now, one after the other; how many tries that were."""
        tries = 0
        while (due := self._claim_delivery()) is not None:
            self._settle_delivery(due)
            tries += 1
        return tries

    def _claim_delivery(self) -> Due | None:
        """Claim a delivery to send; None: nothing is due, no seat is free, or the database does not answer."""
        with self._counting:
            if self._busy.total() >= SEATS:
                return None
            full = [number for number, count in self._busy.items() if count >= SEATS_OF_ONE]
            tenants = [number for number, count in self._busy_tenants.items() if count >= SEATS_OF_TENANT]
        try:
            with self._database.read() as reading:  # nearly always nothing: look before taking the write lock
                if not deliveries.is_due(reading, skip=full, skip_tenants=tenants):
                    return None
            with self._database.begin() as transaction:
                found = deliveries.claim(transaction, limit=1, skip=full, skip_tenants=tenants)
        except Exception as error:  # noqa: BLE001 - the fence around a task: the database is away, it comes back
            if not self._database.away(error):
                _log.warning("looking for deliveries failed: %s", type(error).__name__)
            return None
        for due in found:
            with self._counting:
                self._busy[due.webhook_id] += 1
                self._busy_tenants[due.tenant_id] += 1
        return found[0] if found else None

    def _settle_delivery(self, due: Due) -> None:
        try:
            tried = self._try_delivery(due)
            with self._database.begin() as transaction:
                state = deliveries.settle(transaction, due, tried)
            if state == "dead":
                _log.warning("delivery %s to %s is dead after %d tries", due.id, due.webhook, due.attempt)
        except Exception as error:  # noqa: BLE001 - the fence around a task; it is tried again when its lease ends
            if not self._database.away(error):
                _log.error("delivery %s failed on our side: %s", due.id, type(error).__name__)
        finally:
            with self._counting:
                self._busy -= Counter({due.webhook_id: 1})
                self._busy_tenants -= Counter({due.tenant_id: 1})
            self._freed.set()

    def _try_delivery(self, due: Due) -> Try:
        began = time.monotonic()

        def build_try(address: str, **facts: str | int) -> Try:
            return Try(address=address, ms=round(1000 * (time.monotonic() - began)), **facts)  # type: ignore[arg-type] checked by its callers

        try:
            said = self._post_delivery(due)
        except signing.ForeignSeal as error:
            return build_try("", error=f"foreign-seal: {error}")
        except DestinationRefused as error:
            if error.seen:
                _log.warning("delivery %s to %s is refused: %s", due.id, due.webhook, error.seen)
            return build_try("", error=f"address-refused: {error}")
        except NoAnswer as error:
            return build_try(error.address, error=str(error))
        except OSError:
            return build_try("", error="not-resolved: the name has no address")
        return build_try(said.address, status=said.status, answer=said.text)

    def _post_delivery(self, due: Due) -> Answer:
        seals = [due.secret] if due.old_secret is None else [due.secret, due.old_secret]
        keys = [signing.unseal_secret(seal, self._secret) for seal in seals]
        target = self._allowed.target(due.url)
        until = time.monotonic() + self._seconds
        addresses = self._allowed.addresses(target, self._resolve)
        body = chat_messages.body_of(due, self._public_url)
        at = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"backprobe-webhooks/{__version__}",
            "webhook-id": due.event_id,
            "webhook-timestamp": str(at),
            "webhook-signature": signing.signature(keys, due.event_id, at, body),
        }
        return post(target, addresses, headers, body, seconds=until - time.monotonic(), tls=self._tls)
