"""The error of a question whose answer takes longer to compute than a client waits. Imports nothing."""


class NotReady(Exception):
    """The answer is being computed; a retry after *retry_seconds* may succeed. The message says what is.

    *preference* is how long the request has waited for it, as its client preferred: ``wait=5``; else empty.
    """

    retry_seconds = 2  # the interval of the task that updates forecasts
    preference = ""
