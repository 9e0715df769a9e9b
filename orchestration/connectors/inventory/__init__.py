"""Which node was in which pool."""
