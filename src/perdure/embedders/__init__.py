"""Embedders: from texts to vectors. A fact without a vector is found by its words."""
