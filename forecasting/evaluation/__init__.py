"""Scores of forecasts, and the choice between methods and predictors by them."""
