"""Places: what the pages of sites, resources and reporters, their lists and the map show."""
