"""HTTP and mail that go out: one client of HTTP, with bounds by purpose, and one way to the mail server.

Errors of HTTP; those of mail are Python's::

    EgressError
    |-- TargetRefused    the URL, its address or a redirect is not permitted       permanent, except for DNS
    |-- Unanswered       no connection, no valid TLS, no HTTP, or not in time      temporary
    '-- AnswerTooLarge   the body is larger than the purpose permits               permanent
"""
