import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0016_stale_hours_gathered"),
    ]

    operations = [
        migrations.AlterField(
            model_name="usage",
            name="site",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="usage",
                to="monitor.site",
            ),
        ),
    ]
