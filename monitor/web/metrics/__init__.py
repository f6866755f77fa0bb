"""The metrics of the grid and of the service, as Prometheus reads them."""
