"""The Flask application: settings in, a WSGI callable out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flask import Flask
from werkzeug.routing import IntegerConverter

from service.api.access import keys, project_trends, projects
from service.api.admin import api_index, health, metrics, operation
from service.api.audits import (
    audit_changes,
    audit_events,
    audit_findings,
    audit_matrix,
    audit_trend,
    audit_views,
    audits,
    policies,
)
from service.api.findings import checks, findings, groups, rules, trials
from service.api.records import gradient_checks, graph, history, nodes, parts, record, record_file, rows, source
from service.api.runs import comparison, ranks, recorders, run_events, runs, snippets, submission
from service.api.webhooks import deliveries, webhooks
from service.auth import browser_session, guard, key_form, login
from service.auth.key_uses import KeyUses
from service.context import EXTENSION, Context
from service.dashboard import compare_page
from service.dashboard.admin import audit_log_page, keys_page, overview_page, projects_page, tenants_page
from service.dashboard.audits import audits_page
from service.dashboard.inbox import inbox_page
from service.dashboard.play import play_page
from service.dashboard.reference import reference_page
from service.dashboard.trends import trends_page
from service.limits.rates import Rates
from service.limits.request_bodies import Senders
from service.limits.seats import Seats, Waiters
from service.openapi import document
from service.problems import errors
from service.process.event_streams import Streams
from service.process.recent_curves import RecentCurves
from service.telemetry.metrics import Metrics
from service.telemetry.metrics import register as count_requests
from service.telemetry.request_log import register as log_requests
from service.wake_up import Wakeups
from service.web.cursors import Cursors
from store.access.backlog import Backlog
from store.access.quotas import Room
from store.database.session import Database
from store.runs.reading.wait import Hub
from store.telemetry.broker_probe import BrokerWatch
from store.telemetry.spans import Spans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.settings import Settings

MOST_BODY_BYTES: Final = 2 << 20
"""Of a request's body."""


class _Digits(IntegerConverter):
    """`<int:no>` of an address: digits of ASCII, where a regular expression would take those of every script.

    A number that no column holds is of nothing: its address is not found, whatever would have been asked there.
    """

    regex = "[0-9]+"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "max": 2**31 - 1})


def create_app(settings: Settings, unstarted: Callable[[], Sequence[str]] = tuple) -> Flask:
    """Create the application. It connects to the database at the first request, and never migrates.

    Args:
        settings: Of the web process.
        unstarted: As in `Context`.
    """
    app = Flask(
        __name__,
        static_folder="dashboard/static",
        static_url_path="/static",
        template_folder="dashboard/templates",
    )
    app.config.update(MAX_CONTENT_LENGTH=MOST_BODY_BYTES)
    app.url_map.strict_slashes = True
    app.url_map.converters["int"] = _Digits
    database = Database(settings.store.database_url, durable=True, told=True)
    hub = Hub(database)
    few = max(1, settings.threads // 4)
    wakeups = Wakeups(settings.store)
    measured = Metrics(database, wakeups)
    app.extensions[EXTENSION] = Context(
        settings=settings,
        database=database,
        hub=hub,
        streams=Streams(database, hub),
        lists=Seats(few, "long lists"),
        records=Seats(few, "records"),
        ends=Seats(few, "ends of recorders"),
        senders=Senders(),
        waiters=Waiters(hub, threads=settings.threads),
        wakeups=wakeups,
        cursors=Cursors(settings.secret),
        metrics=measured,
        rates=Rates(settings.rates),
        room=Room(most_bytes=settings.store.max_database_bytes),
        backlog=Backlog(settings.most_queued),
        key_uses=KeyUses(database),
        curves=RecentCurves(),
        spans=Spans(settings.store.spans_url, "backprobe-api"),
        broker=BrokerWatch(settings.store),
        unstarted=unstarted,
    )
    count_requests(app, measured)
    log_requests(app)
    errors.register(app)
    guard.register(app, settings)
    browser_session.register(app, settings)
    login.register(app, settings)
    document.register(app)
    saw = (record, record_file, history, nodes, parts, rows, graph, source, gradient_checks)
    judged = (
        findings,
        checks,
        groups,
        rules,
        trials,
        audits,
        audit_trend,
        audit_views,
        audit_matrix,
        audit_changes,
        audit_events,
        audit_findings,
        policies,
    )
    outward = (webhooks, deliveries, keys, projects, project_trends, operation, api_index, health, metrics)
    for part in (submission, snippets, runs, recorders, run_events, comparison, ranks, *saw, *judged, *outward):
        app.register_blueprint(part.blueprint)
    app.register_blueprint(key_form.blueprint)
    admin = (overview_page, keys_page, projects_page, tenants_page, audit_log_page)
    pages = (audits_page, compare_page, inbox_page, play_page, reference_page, trends_page, *admin)
    for blueprint in {module.blueprint for module in pages}:  # all of them share one
        app.register_blueprint(blueprint)
    return app
