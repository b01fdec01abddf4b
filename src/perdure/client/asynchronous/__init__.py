"""The client for asyncio. What is beside it in `synchronous` is made of this by scripts/unasync.py."""
