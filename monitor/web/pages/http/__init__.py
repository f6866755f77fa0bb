"""Shared by the pages: access control, error pages, middleware and template context."""
