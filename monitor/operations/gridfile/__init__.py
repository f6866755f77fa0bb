"""The grid as one file under version control: read and check a file, apply it to the depot, export it."""
