"""The depot: samples, rollups, retention and backup on PostgreSQL or TimescaleDB."""
