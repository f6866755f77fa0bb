"""Performance: the durations of a series in a time window, described by stage and total."""
