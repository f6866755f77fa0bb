"""The depot: samples, rollups and retention on PostgreSQL or TimescaleDB."""
