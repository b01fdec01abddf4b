"""What people read in a browser: the operations of the contract as one page, without scripts or foreign parts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
h2 { border-bottom: 1px solid #8888; margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 1rem 0.25rem 0; border-top: 1px solid #8884; }
.method { font-weight: bold; }
"""
# The page's own style is named by its digest, so that no other one can be slipped in.
POLICY = (
    "default-src 'none'; frame-ancestors 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'"
).encode()
_METHODS = ("get", "put", "post", "delete")


def docs_page(openapi: dict[str, Any]) -> bytes:
    """Return the description of the API as HTML."""
    info = openapi.get("info", {})
    title = escape(f"{info.get('title', 'Perdure')} {info.get('version', '')}".strip())
    body = "\n".join(_operations(openapi))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{title}</h1><p>{escape(info.get('description', ''))}</p>"
        f'<p>The whole description: <a href="/openapi.json">/openapi.json</a>.</p>\n{body}\n</body></html>\n'
    ).encode()


def _operations(openapi: dict[str, Any]) -> Iterator[str]:
    for path, item in openapi.get("paths", {}).items():
        for method in _METHODS:
            if method in item:
                yield _operation(openapi, path, method, item[method])


def _operation(openapi: dict[str, Any], path: str, method: str, told: dict[str, Any]) -> str:
    head = f'<span class="method">{method.upper()}</span> <code>{escape(path)}</code>'
    summary = escape(told.get("summary", ""))
    content = told.get("requestBody", {}).get("content", {})
    rows = "".join(
        _row(name, field, name in schema.get("required", ()))
        for media in content.values()
        for schema in _alternatives(openapi, media.get("schema", {}))
        for name, field in schema.get("properties", {}).items()
    )
    table = f"<table><tr><th>Field</th><th>Form</th><th></th></tr>{rows}</table>" if rows else ""
    statuses = ", ".join(escape(status) for status in told.get("responses", {}))
    return f"<h2>{head}</h2><p>{summary}</p>{table}<p>Replies: {statuses}</p>"


def _row(name: str, field: dict[str, Any], required: bool) -> str:
    told = escape(field.get("description", ""))
    need = " (required)" if required else ""
    return (
        f"<tr><td><code>{escape(name)}</code>{need}</td><td>{escape(_form(field))}</td><td>{told}</td></tr>"
    )


def _alternatives(openapi: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for one in schema.get("anyOf", schema.get("oneOf", [schema])):
        yield _resolved(openapi, one)


def _resolved(openapi: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found: dict[str, Any] = openapi.get("components", {}).get("schemas", {}).get(name, schema)
    return found


def _form(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "enum" in field:
        return " | ".join(str(one) for one in field["enum"])
    parts = [_form(one) for one in field.get("anyOf", field.get("oneOf", ())) if one.get("type") != "null"]
    if parts:
        return " or ".join(parts)
    return str(field.get("type", "any"))
