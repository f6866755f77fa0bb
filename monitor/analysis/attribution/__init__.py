"""Attribution: which part of the grid is at fault, by the results of many runs; or the monitor itself."""
