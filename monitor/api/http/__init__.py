"""Shared by the API resources: authentication, problem answers, request bodies and common parameters."""
