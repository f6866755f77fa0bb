"""The web server: a gunicorn worker whose threads never wait for a slow client.

Independent of Django and of the rest of ``monitor``: gunicorn imports it before the application.
"""
