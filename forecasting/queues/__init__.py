"""How long a job waits in the queue of a batch system."""
