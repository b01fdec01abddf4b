from scenarios.stores import backend, clock, memory, open_store, slots, store

__all__ = ["backend", "clock", "memory", "open_store", "slots", "store"]
