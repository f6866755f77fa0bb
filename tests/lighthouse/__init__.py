"""Lighthouse over every page, with the demo's and with a year's data; ``make lighthouse`` runs it."""
