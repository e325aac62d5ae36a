"""The page `/admin`: workers, queues, quotas, expiry and usage, as far as the caller may see them."""

from __future__ import annotations

from service.api.admin.operation import DaysQuery, list_live_workers, load_queues, load_usage
from service.auth.caller import caller
from service.context import context
from service.dashboard.admin.forms import render_admin
from service.dashboard.pages import blueprint, runs_get_now
from service.web.body import query
from store.access import quotas, tenants
from store.admin.tenant_slots import queue_by_tenant


@blueprint.get("/admin")
@query(DaysQuery)
def admin_overview(query: DaysQuery) -> str:
    """Show how the service stands."""
    asked = caller()
    operates = asked.operates and asked.may("admin")
    with context().database.read() as transaction:
        its_tenant = next(tenant for tenant in tenants.every(transaction) if tenant.number == asked.tenant_id)
        used = quotas.quotas(transaction, tenant_id=asked.tenant_id)
        by_tenant = queue_by_tenant(transaction) if operates else ()
    return render_admin(
        "overview.html",
        operates=operates,
        workers=list_live_workers(),
        now=[(queue, runs_get_now(queue)) for queue in ("cpu", "gpu")],
        queues=load_queues(),
        by_tenant=by_tenant,
        tenant=its_tenant,
        quotas=used,
        usage=load_usage(query),
    )
