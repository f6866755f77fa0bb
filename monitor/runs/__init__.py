"""The wing of scheduled and reported runs.

A schedule becomes slots in the ``ledger`` (``expand``), which claims those that are due (``claim``) unless an
admission rule or a window of ``maintenance`` keeps them. ``worker`` runs the claimed ones of the home
reporter and ``fleet`` hands the others to the agents of sites. Their reports, pings and the histories that
``imports`` reads come back through ``ingest``, which matches each with its slot and stores run and values in
one transaction.

Begin at ``ledger/expand.py``, ``ledger/claim.py`` and ``ingest/write.py``, in this order.
"""
