"""HTTP that goes out: one client, with bounds by purpose.

Errors::

    EgressError
    |-- TargetRefused    the URL, its address or a redirect is not permitted       permanent, except for DNS
    |-- Unanswered       no connection, no valid TLS, no HTTP, or not in time      temporary
    '-- AnswerTooLarge   the body is larger than the purpose permits               permanent
"""
