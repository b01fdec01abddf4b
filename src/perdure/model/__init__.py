"""Frozen values: facts, documents, queries, replies. No behaviour, no storage."""
