"""What the pages share: access control, error pages, middleware and template context."""
