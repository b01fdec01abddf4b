"""Exact search by cosine over vectors held in memory, addressed by row numbers."""
