"""Forecasts of metrics from measured values: methods, their uncertainty and their evaluation."""
