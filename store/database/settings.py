"""Where the database, the broker and their files are: the environment, read once into a frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import platformdirs

from store.database.environment_variables import Variable, describe_variable, describe_variables
from store.webhooks.destination import Allowed

EMBEDDED: Final = "embedded"
"""The broker URL of a service without a broker server: files below the home."""

EMBEDDED_TRANSPORT: Final = "workers.broker.atomicfs:Transport"
"""kombu finds the embedded broker's transport by this name, so that nobody imports it."""

POLL_SECONDS: Final = 0.03
"""How often the embedded broker looks for a wake-up: 0.6 % of a core when idle, 72 ms from submit to done (p50)."""

QUEUES: Final[Mapping[str, str]] = {"cpu": "backprobe.cpu.v1", "gpu": "backprobe.gpu.v1"}
"""The broker's queue for each queue of runs. Queue arguments cannot change under a name, so the name has a version."""

EXECUTE_NEXT: Final = "backprobe.execute_next"
"""The one task: look at this queue of runs."""

FEWEST_CHARACTERS: Final = 32
"""Of BACKPROBE_SECRET: as 128 bits in hex."""

WAKE_UP_SECONDS: Final = 60
"""A broker that can drops a wake-up older than this, by its own clock; one that comes late finds nothing to claim.

Never Celery's `expires`: the worker would compare its clock with the publisher's, and be deaf with a wrong one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where everything that outlives a process lies; what may hold a password is not in its repr.

    The metadata of a field names its environment variable and says what it means.

    Attributes:
        home: Only `make_home` creates it.
        database_url: SQLAlchemy URL with its driver.
        broker_url: A kombu URL, or "embedded".
        max_database_bytes: None: no limit.
        secret: None: the secret is in a file of the home (`store.access.secret`).
        spans_url: None: no spans are sent.
        public_url: Without a slash at the end; None: not known.
    """

    home: Path = field(
        metadata=describe_variable(
            "BACKPROBE_HOME",
            "the folder with the SQLite database, the embedded broker, the secret and the logs",
            "`~/.local/share/backprobe` on Linux",
        )
    )
    database_url: str = field(
        repr=False,
        metadata=describe_variable(
            "BACKPROBE_DATABASE_URL",
            "`postgresql://user:password@host/backprobe`, or a SQLite file as `sqlite:////path`",
            "`backprobe.db` in the home",
        ),
    )
    broker_url: str = field(
        repr=False,
        metadata=describe_variable(
            "BACKPROBE_BROKER_URL",
            "`redis://:password@host:6379/0`, or `amqp://user:password@host//` for RabbitMQ",
            "files in the home",
        ),
    )
    max_database_bytes: int | None = field(
        default=None,
        metadata=describe_variable(
            "BACKPROBE_MAX_DATABASE_BYTES",
            "what all tenants together may store; set it for API processes and the reaper",
            "no limit",
        ),
    )
    secret: bytes | None = field(
        default=None,
        repr=False,
        metadata=describe_variable(
            "BACKPROBE_SECRET",
            f"the server's secret, {FEWEST_CHARACTERS} characters or more; all processes of a service need the "
            "same one",
            "the file `secret` in the home",
        ),
    )
    spans_url: str | None = field(
        default=None,
        repr=False,
        metadata=describe_variable(
            "BACKPROBE_SPANS_URL",
            "`http://collector:4318/v1/traces`: send spans to this OpenTelemetry collector; set it for API processes "
            "and workers",
        ),
    )
    public_url: str | None = field(
        default=None,
        metadata=describe_variable(
            "BACKPROBE_PUBLIC_URL",
            "where people open the pages, `https://backprobe.example.com`: messages to Slack and Teams link there; set "
            "it for the reaper",
            "messages have no link",
        ),
    )
    outward: Allowed = field(
        default_factory=Allowed,
        metadata=describe_variables(
            Variable(
                name="BACKPROBE_WEBHOOK_NETWORKS",
                meaning="own networks to which webhooks may be sent, also by plain http: `10.1.0.0/16,fd00:1::/64`; "
                "set it for API processes and the reaper",
                default="none: only global addresses, only https",
            ),
            Variable(
                name="BACKPROBE_WEBHOOK_PORTS",
                meaning="ports to which webhooks may be sent, in those networks too: `443,8443,9000-9100`; set it for "
                "API processes and the reaper",
                default="443, and 80 if a network is set",
            ),
        ),
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, home: Path | None = None) -> StoreSettings:
        """Read the variables of the fields; an empty one is unset.

        Args:
            environ: The environment.
            home: Takes precedence over BACKPROBE_HOME.

        Raises:
            ValueError: a variable other than the home and the two URLs is not valid; the operator must act.
        """
        named = environ.get("BACKPROBE_HOME")
        folder = home or (Path(named) if named else Path(platformdirs.user_data_dir("backprobe")))
        folder = folder.expanduser().absolute()
        return cls(
            home=folder,
            database_url=with_driver(environ.get("BACKPROBE_DATABASE_URL") or f"sqlite:///{folder / 'backprobe.db'}"),
            broker_url=environ.get("BACKPROBE_BROKER_URL") or EMBEDDED,
            max_database_bytes=_bytes(environ.get("BACKPROBE_MAX_DATABASE_BYTES") or None),
            secret=_secret(environ.get("BACKPROBE_SECRET") or None),
            spans_url=_spans_url(environ.get("BACKPROBE_SPANS_URL") or None),
            public_url=_public_url(environ.get("BACKPROBE_PUBLIC_URL") or None),
            outward=Allowed.from_environment(environ),
        )

    @property
    def embedded(self) -> bool:
        """The broker is ours, in files below the home."""
        return self.broker_url == EMBEDDED

    def make_home(self) -> Path:
        """Create the home, readable by its owner only, and return it."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.home


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"BACKPROBE_MAX_DATABASE_BYTES is {text!r}; it must be a number of bytes, such as 20000000000")
    return int(text)


def _spans_url(text: str | None) -> str | None:
    parts = None if text is None else urlsplit(text)
    if parts is not None and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise ValueError(
            f"BACKPROBE_SPANS_URL begins with {parts.scheme!r}; it must be one like http://collector:4318/v1/traces"
        )
    return text


def _public_url(text: str | None) -> str | None:
    parts = None if text is None else urlsplit(text)
    if parts is not None and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.query):
        raise ValueError(f"BACKPROBE_PUBLIC_URL is {text!r}; it must be one like https://backprobe.example.com")
    return None if text is None else text.rstrip("/")


def describe_weakness(text: str) -> str | None:
    """Say why a secret or key of the environment can be guessed; None: it is long enough and not one character."""
    if len(text) < FEWEST_CHARACTERS:
        return f"has {len(text)} of the {FEWEST_CHARACTERS} characters that it needs"
    return "is one character repeated" if len(set(text)) == 1 else None


def _secret(text: str | None) -> bytes | None:
    if text is not None and (fault := describe_weakness(text)) is not None:
        raise ValueError(f"BACKPROBE_SECRET {fault}: `openssl rand -hex 32` makes a good one")
    return None if text is None else text.encode()


def with_driver(url: str) -> str:
    """Put the driver that Backprobe installs into a database URL: `postgres://` and `postgresql://` mean psycopg 3."""
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url


def celery_settings(settings: StoreSettings) -> dict[str, Any]:
    """Return the Celery configuration of publisher and worker, in lower case as `app.conf.update` takes it.

    A message carries a wake-up and no work, so it is acknowledged early, never prefetched in number, and its loss
    costs a second at most.
    """
    shared: dict[str, Any] = {
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "task_ignore_result": True,
        "result_backend": None,
        "accept_content": ["json"],
        "task_serializer": "json",
        "task_default_queue": QUEUES["cpu"],
        "task_create_missing_queues": True,
        "broker_connection_retry_on_startup": True,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,  # it makes a record of each line that is written
        "enable_utc": True,
    }
    return shared | _broker(settings)


def _broker(settings: StoreSettings) -> dict[str, Any]:
    if settings.embedded:
        folder = settings.home / "broker"
        options: dict[str, Any] = {
            "data_folder_in": str(folder / "messages"),
            "data_folder_out": str(folder / "messages"),
            "control_folder": str(folder / "control"),
            "polling_interval": POLL_SECONDS,
        }
        return {
            "broker_url": "filesystem://",
            "broker_transport": EMBEDDED_TRANSPORT,
            "broker_transport_options": options,
        }
    scheme = urlsplit(settings.broker_url).scheme
    if scheme in ("redis", "rediss"):
        options = {"socket_timeout": 30, "socket_connect_timeout": 5, "health_check_interval": 10}
    elif scheme in ("amqp", "amqps", "pyamqp"):
        options = {"confirm_publish": True}
    else:
        options = {}
    return {"broker_url": settings.broker_url, "broker_transport_options": options}
