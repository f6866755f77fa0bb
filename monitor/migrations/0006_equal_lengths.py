"""Arrays of a row that belong together have equal lengths; rows that are otherwise are computed again."""

from django.db import migrations, models
from django.db.models.functions import Length

# The dirty hour has the worker compute the row again. Unequal lengths would end the worker that counts it.
MEND = """
WITH mended AS (
    UPDATE monitor_latestrun SET outcomes = '', slots = '{}', failed_resources = '{}', since = NULL
    WHERE cardinality(slots) <> length(outcomes) OR cardinality(failed_resources) NOT IN (0, length(outcomes))
    RETURNING series_id
)
INSERT INTO monitor_dirtyhour (series_id, hour, gathered)
    SELECT series_id, date_trunc('hour', now(), 'UTC'), false FROM mended;
WITH mended AS (
    UPDATE monitor_seriesstanding
    SET outcomes = left(outcomes, cardinality(slots)), slots = slots[:length(outcomes)]
    WHERE cardinality(slots) <> length(outcomes) RETURNING series_id
)
INSERT INTO monitor_standingchange (series_id) SELECT series_id FROM mended;
UPDATE monitor_forecaststate SET record_n = 0, less = '{}', most = '{}', mean_absolute_error = NULL,
    relative_error = NULL, mean_absolute_scaled_error = NULL, winkler_score = NULL
WHERE cardinality(less) <> cardinality(most);
SET CONSTRAINTS ALL IMMEDIATE;  -- a table with pending checks cannot be altered
"""


class Migration(migrations.Migration):
    dependencies = [
        ("monitor", "0005_receivers_and_deletions"),
    ]

    operations = [
        migrations.RunSQL(MEND, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="forecaststate",
            constraint=models.CheckConstraint(
                condition=models.Q(("less__len", models.F("most__len"))), name="forecaststate_equal_lengths"
            ),
        ),
        migrations.AddConstraint(
            model_name="latestrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("slots__len", Length("outcomes")),
                    models.Q(
                        ("failed_resources__len", 0),
                        ("failed_resources__len", Length("outcomes")),
                        _connector="OR",
                    ),
                ),
                name="latestrun_equal_lengths",
            ),
        ),
        migrations.AddConstraint(
            model_name="seriesstanding",
            constraint=models.CheckConstraint(
                condition=models.Q(("slots__len", Length("outcomes"))), name="standing_equal_lengths"
            ),
        ),
    ]
