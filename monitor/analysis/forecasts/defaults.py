"""Defaults of forecasts. Imports nothing: pages that only show forecasts load no numerical code."""

METHOD = "auto"  # of answers that are kept up to date, and of questions that name no method
LEVEL = 0.8  # coverage of the interval that pages show
HEADLINE = "total.seconds"  # the metric that stands for its series
ELSEWHERE = "elsewhere"  # the method of forecasts where an application has not run
