"""The wing of the service itself: configured, started, watched, copied, and brought to sites.

``gridfile`` reads and writes the grid as one file; ``survey`` proposes the first one; ``deployment`` installs
reporters at sites over SSH; ``backup`` copies and restores the depot. ``serving`` starts the processes,
``supervisor`` keeps them running, ``embedded`` provides PostgreSQL and Valkey where there are none, and
``web_server`` is the worker of gunicorn.

Begin at ``gridfile/define.py`` for what a grid is, at ``serving/services.py`` for which processes there are.
"""
