import gc

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import m2m_changed, post_migrate, pre_delete


class MonitorConfig(AppConfig):
    name = "monitor"
    verbose_name = "gridcast"

    def ready(self) -> None:
        from django.contrib.auth.models import Group, User  # noqa: PLC0415

        from monitor import checks  # noqa: F401, PLC0415 - registers the checks
        from monitor.core.db.timescale_extension import lift_decompression_limit  # noqa: PLC0415
        from monitor.depot.access import roles  # noqa: PLC0415
        from monitor.depot.rollups import worker  # noqa: PLC0415

        post_migrate.connect(roles.ensure_roles, sender=self)
        m2m_changed.connect(roles.follow_groups, sender=User.groups.through)
        pre_delete.connect(roles.clear_members, sender=Group)
        worker.subscribe("monitor.web.status.latest_sql.update_rows")
        worker.subscribe("monitor.web.status.standings.recount_changed")
        worker.subscribe("monitor.analysis.forecasts.pending_changes.record")
        worker.subscribe("monitor.analysis.outcomes.worker.note")
        connection_created.connect(lift_decompression_limit)
        gc.freeze()  # loaded modules stay: later collections skip them, and forked workers share their pages
        gc.enable()


class GridcastAdminConfig(AdminConfig):
    """The app of Django's admin site."""

    default_site = "monitor.web.accounts.admin_site.GridcastAdminSite"
