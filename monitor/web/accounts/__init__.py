"""Accounts: login, passwords, second factors, identity providers, sessions.

``throttle.py`` limits failed logins; the ``*_adapter.py`` are what django-allauth asks of an installation.
"""
