"""The weather of the local grid: a pure, seeded generator. Numbers in, numbers out."""
