from django.db import migrations, models

# A hold is known by the name of what it holds, and follows it, whoever changes it.
FOLLOW = """
CREATE FUNCTION monitor_hold_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE monitor_hold SET ended_at = clock_timestamp(), ended_by = 'it was removed'
            WHERE kind = TG_ARGV[0] AND name = OLD.name AND ended_at IS NULL;
    ELSIF NEW.name <> OLD.name THEN
        UPDATE monitor_hold SET name = NEW.name
            WHERE kind = TG_ARGV[0] AND name = OLD.name AND ended_at IS NULL;
    END IF;
    RETURN NULL;
END $$;
"""
KINDS = ("series", "suite", "site", "reporter")
FOLLOW += "".join(
    f"CREATE TRIGGER hold_follows AFTER UPDATE OF name OR DELETE ON monitor_{kind} FOR EACH ROW"
    f" EXECUTE FUNCTION monitor_hold_follows('{kind}');"
    for kind in KINDS
)
STAY = "".join(f"DROP TRIGGER hold_follows ON monitor_{kind};" for kind in KINDS)
STAY += "DROP FUNCTION monitor_hold_follows;"


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0006_usage"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="forced",
            field=models.BooleanField(default=False, help_text="asked for although its series was held"),
        ),
        migrations.AlterField(
            model_name="run",
            name="trigger",
            field=models.CharField(
                default="schedule", help_text="the schedule, or who asked, why", max_length=900
            ),
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("series", "Series"),
                            ("suite", "Suite"),
                            ("site", "Site"),
                            ("reporter", "Reporter"),
                        ],
                        max_length=8,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("mode", models.CharField(choices=[("pause", "paused"), ("drain", "drained")], max_length=5)),
                ("who", models.CharField(max_length=200)),
                ("why", models.CharField(max_length=500)),
                ("began_at", models.DateTimeField()),
                ("until", models.DateTimeField(help_text="when it ends by itself", null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, max_length=200)),
                ("ended_why", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "ordering": ["-began_at", "-id"],
                "indexes": [models.Index(fields=["kind", "name", "-began_at"], name="hold_history")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)), fields=("kind", "name"), name="hold_open_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["series", "suite", "site", "reporter"])),
                        name="hold_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("mode__in", ["pause", "drain"])), name="hold_mode_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("why", ""), _negated=True), models.Q(("who", ""), _negated=True)
                        ),
                        name="hold_has_who_and_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("until", None), ("until__gt", models.F("began_at")), _connector="OR"
                        ),
                        name="hold_ends_after_it_began",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FOLLOW, STAY),
    ]
