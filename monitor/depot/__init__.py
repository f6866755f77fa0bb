"""The wing of values kept: samples, their rollups, their series, and the access to them.

``ingest`` (wing ``runs``) hands values to ``samples``, which writes them and notes the hours that became
dirty; ``rollups`` sums dirty hours up; ``retention`` deletes what the policy of a series no longer keeps;
``engines`` has what plain PostgreSQL and TimescaleDB do differently. ``series`` has the kinds, segments and
staleness of series, and their deletion. ``access`` grants roles, issues tokens and writes the audit record.

Begin at ``samples/write.py``, then ``rollups/worker.py``.
"""
