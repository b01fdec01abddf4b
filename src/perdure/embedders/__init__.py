"""Embedders: from texts to vectors. A fact without a vector is found by its words."""

from perdure.embedders.cached import CachedEmbedder
from perdure.embedders.hashing import HashingEmbedder
from perdure.embedders.http import HttpEmbedder
from perdure.embedders.onnx import OnnxEmbedder
from perdure.embedders.protocol import Embedder
from perdure.embedders.static import StaticEmbedder

__all__ = [
    "CachedEmbedder",
    "Embedder",
    "HashingEmbedder",
    "HttpEmbedder",
    "OnnxEmbedder",
    "StaticEmbedder",
]
