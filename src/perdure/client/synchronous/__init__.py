# Made of perdure/client/asynchronous/__init__.py by scripts/unasync.py: change that file, and run it.
"""The client that waits for each answer."""
