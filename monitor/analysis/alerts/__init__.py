"""Alert rules: conditions, the alerts that they open, and the messages to channels."""
