"""The wing without a domain: modules that any service on PostgreSQL could use.

``db`` is PostgreSQL (binary parameters, advisory locks, partitions), ``egress`` the one HTTP client for
requests that go out, ``valkey`` and ``counters`` the Redis protocol, ``compression`` stored documents with
the ``dictionaries`` they need, ``yamlfile`` and ``csvfile`` files that users write, ``env`` the environment
variables; ``networks``, ``units``, ``clipping`` and ``log`` serve the rest.

Nothing flows through this wing; all others call it. Begin at ``env``: it lists everything that can be set.
"""
