"""Webhooks: signed messages by HTTP about runs, sites and alerts, to destinations that may receive them."""
