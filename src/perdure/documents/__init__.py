"""The document engine: texts under ids, with versions, searched by their best unit."""
