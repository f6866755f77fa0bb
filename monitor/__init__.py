"""The service: a Django project and its one app."""
