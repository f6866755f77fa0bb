"""How sure a forecast is: quantiles of what comes, and whether the run passes at all."""
