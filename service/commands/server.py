"""The commands that this package adds to `backprobe`: serve, api, migrate. Flask is imported only when one runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

MOST_PORT: Final = 65535


def _home(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--home", type=Path, help="folder of database, broker and logs (default: BACKPROBE_HOME, else your data folder)"
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= MOST_PORT):
        message = f"{text!r} is no port: it takes 0 to {MOST_PORT}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=8000, help="port; 0 takes any free one (default: %(default)s)")


def serve(subparsers: Any) -> None:
    """Add `backprobe serve`."""
    parser = subparsers.add_parser(
        "serve", help="start everything: database, web server, worker, reaper", description=serve_text
    )
    _address(parser)
    _home(parser)
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="worker processes (default: %(default)s)")
    parser.add_argument("--no-worker", action="store_true", help="start no worker; runs wait until one comes")
    parser.add_argument(
        "--demo",
        action="store_true",
        help="if there is no run yet, submit two example programs and print what came out",
    )
    parser.add_argument(
        "--trust-code",
        action="store_true",
        help="where nothing can be isolated, snippets may run with the worker's own rights, also beyond loopback",
    )
    parser.set_defaults(run=_serve)


serve_text = (
    "Migrates the database, starts a worker and the reaper as supervised child processes, and serves the API and the "
    "pages until Ctrl-C. Environment: BACKPROBE_HOME, BACKPROBE_DATABASE_URL, BACKPROBE_BROKER_URL, BACKPROBE_API_KEY."
)


def _serve(arguments: argparse.Namespace) -> int:
    from service.server.serve import ServeOptions, run

    return run(
        ServeOptions(
            host=arguments.host,
            port=arguments.port,
            workers=0 if arguments.no_worker else max(0, arguments.workers),
            home=arguments.home,
            demo=arguments.demo,
            trust_code=arguments.trust_code,
        )
    )


def api(subparsers: Any) -> None:
    """Add `backprobe api`."""
    parser = subparsers.add_parser("api", help="serve the API and the pages only; workers run elsewhere")
    _address(parser)
    _home(parser)
    parser.set_defaults(run=_api)


def _api(arguments: argparse.Namespace) -> int:
    from service.server.serve import run_api

    return run_api(arguments.host, arguments.port, arguments.home)


def migrate(subparsers: Any) -> None:
    """Add `backprobe migrate`."""
    parser = subparsers.add_parser("migrate", help="bring the database to this version's schema")
    _home(parser)
    parser.set_defaults(run=_migrate)


def _migrate(arguments: argparse.Namespace) -> int:
    from service.server.serve import run_migrate

    return run_migrate(arguments.home)
