"""The exchange of a remote reporter with the server."""

EXCHANGE_SECONDS = 60
