"""The uncertainty of a forecast: quantiles of the next value, and the probability that the run passes."""
