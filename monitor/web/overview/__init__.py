"""The grid at a glance: the latest state of every series, counted by site and group."""
