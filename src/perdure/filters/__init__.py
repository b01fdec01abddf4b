"""Metadata filters: their grammar, and what they mean."""
