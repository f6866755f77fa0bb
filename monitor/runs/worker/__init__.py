"""The home reporter: the Celery worker that runs claimed runs on this host."""
