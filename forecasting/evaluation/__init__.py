"""Scores of forecasts, and the choice of methods and predictors by scores."""
