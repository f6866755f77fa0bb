"""Reports: the study of two grids repeated with the runs of the depot, as one document."""
