"""Order names naturally, ``site2`` before ``site10``: a column computed from the name."""

from django.db import migrations

from monitor.models.natural_order import sort_name_field

MODELS = (
    "alertrule",
    "availabilityprofile",
    "maintenancewindow",
    "reporter",
    "resource",
    "series",
    "site",
    "suite",
    "webhook",
)
ORDERED = {"ordering": ["sort_name"]}
OTHER_OPTIONS = {
    "reporter": {"permissions": [("manage_reporters", "Can create, enrol and revoke reporters")]},
    "series": {"permissions": [("run_series", "Can run a series now")], "verbose_name_plural": "series"},
    "webhook": {"permissions": [("manage_webhooks", "Can define webhooks and repeat their deliveries")]},
}


class Migration(migrations.Migration):
    dependencies = [("monitor", "0004_outcomes_by_receipt")]

    operations = [
        *(
            migrations.AddField(name, "sort_name", sort_name_field(db_index=name == "series"))
            for name in MODELS
        ),
        *(migrations.AlterModelOptions(name, ORDERED | OTHER_OPTIONS.get(name, {})) for name in MODELS),
    ]
