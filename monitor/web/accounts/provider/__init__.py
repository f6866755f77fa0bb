"""Logging in by the identity provider: its documents, its tokens, and what a verified login says.

Errors::

    ProviderFault
    |-- ProviderUnreachable   it gave no answer                                            502
    |-- ProviderUnusable      an answer, a token or a setting there is not acceptable      502
    |-- ProviderBusy          as many threads as permitted wait for it already             503
    '-- LoginRefused          this login is too old, or was begun elsewhere                401
"""
