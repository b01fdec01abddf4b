"""The log: the only truth of a store, behind one protocol with many backends."""
