"""Writes the tools and resources of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.contract.operations import OPERATIONS
from perdure.mcp import resources
from perdure.mcp.arguments import input_schema, output_schema
from perdure.mcp.catalogue import TOOLS, Profile, Tool
from perdure.policies.choices import camel_case

from . import wire
from .book import Block, Book
from .http import components, homes_of, meaning
from .markdown import anchor, prose, table


def overview(book: Book, block: Block) -> list[str]:
    """Write a table of all tools."""
    rows = []
    for tool in TOOLS:
        marks = [name for name, told in (("reads", tool.only_reads), ("may erase", tool.erases)) if told]
        offer = "default" if tool.by_default else "all"
        operation = f"[`{tool.operation}`](http.md#{anchor(tool.operation)})"
        rows.append((f"[`{tool.name}`](#{anchor(tool.name)})", offer, operation, ", ".join(marks)))
    return table(("tool", "offered with `--tools`", "operation", "hints"), rows)


def tools(book: Book, block: Block) -> list[str]:
    """Write an entry for each tool that is offered by default, or for each of the others."""
    (wanted,) = block.words
    lines: list[str] = []
    for tool in TOOLS:
        if tool.by_default == (wanted == "default"):
            lines += ["", f"### `{tool.name}`", "", *_tool(tool)]
    return lines[1:]


def listed_resources(book: Book, block: Block) -> list[str]:
    """Write a table of the resources."""
    known = [*((one["uri"], one) for one in resources.RESOURCES)]
    known += [(one["uriTemplate"], one) for one in resources.TEMPLATES]
    return table(("resource", "what it holds"), [(f"`{uri}`", one["description"]) for uri, one in known])


def _tool(tool: Tool) -> list[str]:
    lines = [prose(tool.use, lambda name: None)]
    profiles: tuple[Profile, ...] = ("default", "all") if tool.by_default else ("all",)
    rows = list(_rows(tool, profiles))
    if rows:
        lines += ["", *table(("argument", "value", "meaning"), rows)]
    else:
        lines += ["", "Takes no arguments."]
    fields = ", ".join(f"`{name}`" for name in output_schema(tool)["properties"])
    return [*lines, "", f"Gives {fields}."]


def _rows(tool: Tool, profiles: tuple[Profile, ...]) -> Iterator[tuple[str, str, str]]:
    told = [input_schema(tool, profile) for profile in profiles]
    for name, field, required in wire.properties(told[-1]):
        notes = ["required"] if required else []
        if len(told) > 1 and name not in told[0]["properties"]:
            notes.append("only with `--tools all`")
        said = wire.description(field) or _contract_says(tool, name)
        meaning_told = prose("; ".join(filter(None, [said.rstrip("."), *notes])), lambda name: None)
        yield f"`{name}`", wire.kind(field, str, with_null=False), meaning_told


def _contract_says(tool: Tool, name: str) -> str:
    """Return what the contract says of an argument that models are told no more of than its name."""
    fields = components()[OPERATIONS[tool.operation].request.__name__].get("properties", {})
    wanted = camel_case(name)
    return meaning(wanted, fields.get(wanted, {}), homes_of(OPERATIONS[tool.operation]))
