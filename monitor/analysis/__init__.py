"""The wing of conclusions about the grid, drawn from stored runs and values.

``forecasts`` predicts the next values and scores what it said. A failed run gets its cause by ``signatures``;
``attribution`` finds the part of the grid that is at fault; ``incidents`` joins failures by cause;
``outcomes`` counts them over time; ``alerts`` tells people, ``webhooks`` and ``traces`` tell programs.
``availability`` says since when and for how much of a month a site worked, ``performance`` how long its
stages take, ``storage`` what its storage areas carry.

All of it is computed in the background, after ingest, and stored. Begin at ``forecasts/update.py`` for a
value, at ``signatures/classify_runs.py`` for a failure.
"""
