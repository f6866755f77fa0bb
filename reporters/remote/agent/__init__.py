"""The agent: runs the assigned series by their schedules, and delivers their reports.

The process has four threads: the main thread starts runs (``runs.py``), one exchanges with the server
(``exchange.py``), one delivers the spool (``delivery.py``), and one hears of ended runs (``runner.py``). A
process of its own, ``run_server.py``, forks for each run, so that a run starts quickly and leaves no memory
behind.
"""
