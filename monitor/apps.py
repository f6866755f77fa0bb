import gc

from django.apps import AppConfig


class MonitorConfig(AppConfig):
    name = "monitor"
    verbose_name = "gridcast"

    def ready(self) -> None:
        from monitor import checks  # noqa: F401, PLC0415 - registers them

        gc.freeze()  # what is loaded stays: no need to look at it again, or to copy it into forked workers
        gc.enable()
