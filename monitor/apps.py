import gc

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class MonitorConfig(AppConfig):
    name = "monitor"
    verbose_name = "gridcast"

    def ready(self) -> None:
        from monitor import checks  # noqa: F401, PLC0415 - registers the checks
        from monitor.db.timescale_extension import lift_decompression_limit  # noqa: PLC0415
        from monitor.depot.rollups import worker  # noqa: PLC0415

        worker.subscribe("monitor.overview.latest_sql.update_rows")
        worker.subscribe("monitor.forecasts.pending_changes.record")
        connection_created.connect(lift_decompression_limit)
        gc.freeze()  # loaded modules stay: later collections skip them, and forked workers share their pages
        gc.enable()
