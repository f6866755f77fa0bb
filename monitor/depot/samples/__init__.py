"""Write, read, pair, downsample and export samples, the measured values of metrics."""
