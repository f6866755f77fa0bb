"""PostgreSQL itself: binary parameters, advisory locks, partitions, snapshots, table sizes."""
