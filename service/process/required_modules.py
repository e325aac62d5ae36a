"""Check before the start that the Python modules which the settings need are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from service.process.home import CannotServe
from store.database.missing_module import describe_missing

if TYPE_CHECKING:
    from service.settings import Settings


def check_modules(settings: Settings) -> None:
    """Look for the modules without importing them.

    Raises:
        CannotServe: a module that a setting needs is not installed.
    """
    needed = {
        "BACKPROBE_OIDC_ISSUER": ("authlib", "requests") if settings.oidc is not None else (),
        "BACKPROBE_RATE_URL": ("redis",) if settings.rates.url is not None else (),
        "BACKPROBE_SPANS_URL": (
            ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http") if settings.store.spans_url else ()
        ),
    }
    for variable, modules in needed.items():
        for module in modules:
            if not _is_installed(module):
                raise CannotServe(f"{variable} cannot be used: {describe_missing(module)}.")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False
