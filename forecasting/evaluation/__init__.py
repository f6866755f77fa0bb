"""How good forecasts were, and which method and predictor is the better choice for it."""
