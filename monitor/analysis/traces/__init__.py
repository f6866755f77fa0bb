"""Runs as traces of OpenTelemetry: a run is a trace, its stages are spans."""
