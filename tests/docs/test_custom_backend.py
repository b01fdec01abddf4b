"""The log of the page custom-backend.md, as a reader would copy it, keeps the contract of all logs."""

import sys
import types

from markdown_page import blocks
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "custom-backend.md"


def load_page():
    """Run the page's Python as one module and return it."""
    module = types.ModuleType("custom_backend_page")
    sys.modules[module.__name__] = module  # where the page's classes look up their annotations
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), module.__dict__)
    return module


TestFileLog = load_page().TestFileLog
