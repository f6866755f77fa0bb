"""The processes of gridcast as services of the supervisor, for ``manage.py serve`` and the demo."""
