"""The grid as one file under version control: read, checked, compared with the depot, applied, exported."""
