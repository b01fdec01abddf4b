"""Vector indexes of their own, beside any store: partitions that callers replace whole, searched exactly."""
