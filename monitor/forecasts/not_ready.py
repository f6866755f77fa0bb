"""The error of a question whose answer takes longer to compute than a client waits. Imports nothing."""


class NotReady(Exception):
    """The answer is being computed; a retry after *retry_seconds* may succeed. The message says what is."""

    retry_seconds = 2  # the interval of the task that updates forecasts
