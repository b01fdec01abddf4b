"""A vector index in a SQLite file, shared by processes."""
