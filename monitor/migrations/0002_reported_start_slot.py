from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("monitor", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="reportedstart",
            index=models.Index(fields=["series", "slot"], name="reported_start_slot"),
        ),
    ]
