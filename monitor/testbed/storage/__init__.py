"""Storage in memory that takes as long as a device: a FUSE file system over a pure model of time."""
