"""The one place that knows the official SDK, in its versions 1 and 2: a low-level server around a Service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

from perdure.dispatch import Caller
from perdure.errors import InvalidRequest, NotFound, PerdureError
from perdure.mcp import resources
from perdure.mcp.service import Service, internal

try:
    import anyio.to_thread
    from mcp.server.lowlevel import Server
except ImportError as error:
    raise InvalidRequest(
        f"the Model Context Protocol needs the package mcp ({type(error).__name__}): pip install 'perdure[mcp]'",
        field="mcp",
    ) from error

JsonObject = dict[str, Any]
CallerOf = Callable[[Any], Caller]
"""Returns who asks, given the HTTP request that carries a message (None over stdio)."""
Run = Callable[[Callable[[], JsonObject]], Awaitable[JsonObject]]
"""Runs a call of the engine, which blocks, without blocking the event loop."""

NAME = "perdure"
_INVALID_PARAMS = -32602
_NOT_FOUND = -32002  # a resource's, by the protocol
_INTERNAL = -32603
_IS_V2 = hasattr(Server, "add_request_handler")
_Answer = Callable[[Any, Mapping[str, Any]], Awaitable[JsonObject]]


async def in_thread(call: Callable[[], JsonObject]) -> JsonObject:
    # Not cancellable: a write that has begun ends before the process does.
    return await anyio.to_thread.run_sync(call)


def make_server(service: Service, caller_of: CallerOf, run: Run = in_thread) -> Any:
    """Return a server of the SDK whose tools and resources are those of the service."""

    async def tools(request: Any, _: Mapping[str, Any]) -> JsonObject:
        return {"tools": service.tools(caller_of(request))}

    async def call(request: Any, params: Mapping[str, Any]) -> JsonObject:
        work = partial(service.call, params["name"], params.get("arguments"), caller_of(request))
        return await _carried_out(run, work, _INVALID_PARAMS)

    async def listed(_: Any, __: Mapping[str, Any]) -> JsonObject:
        return {"resources": list(resources.RESOURCES)}

    async def templates(_: Any, __: Mapping[str, Any]) -> JsonObject:
        return {"resourceTemplates": list(resources.TEMPLATES)}

    async def read(request: Any, params: Mapping[str, Any]) -> JsonObject:
        work = partial(service.read, str(params["uri"]), caller_of(request))
        return await _carried_out(run, work, _NOT_FOUND)

    answers: dict[str, _Answer] = {
        "tools/list": tools,
        "tools/call": call,
        "resources/list": listed,
        "resources/templates/list": templates,
        "resources/read": read,
    }
    server = Server(NAME, version=version("perdure"), instructions=service.instructions())
    (_register_v2 if _IS_V2 else _register_v1)(server, answers)
    return server


async def _carried_out(run: Run, work: Callable[[], JsonObject], absent: int) -> JsonObject:
    """Return what the work gives; what it raises is an error of the protocol, and the server lives on."""
    try:
        return await run(work)
    except NotFound as error:
        raise _error(absent, error) from None
    except PerdureError as error:
        raise _error(_INVALID_PARAMS if isinstance(error, InvalidRequest) else _INTERNAL, error) from None
    except Exception as error:  # noqa: BLE001 - as in Service.call, for what is no tool
        raise _error(_INTERNAL, internal("the server", error)) from None


def _error(code: int, error: PerdureError) -> Exception:
    if _IS_V2:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - version 1 has none

        return MCPError(code, str(error), {"code": error.code})
    from mcp import types  # noqa: PLC0415 - version 2 keeps them elsewhere
    from mcp.shared import exceptions  # noqa: PLC0415

    told = types.ErrorData(code=code, message=str(error), data={"code": error.code})
    made: Exception = exceptions.McpError(told)  # type: ignore[attr-defined] # of version 1
    return made


def _register_v2(server: Any, answers: Mapping[str, _Answer]) -> None:
    import mcp_types as types  # noqa: PLC0415 - version 1 has none

    kinds: dict[str, tuple[Any, Any]] = {
        "tools/list": (types.PaginatedRequestParams, types.ListToolsResult),
        "tools/call": (types.CallToolRequestParams, types.CallToolResult),
        "resources/list": (types.PaginatedRequestParams, types.ListResourcesResult),
        "resources/templates/list": (types.PaginatedRequestParams, types.ListResourceTemplatesResult),
        "resources/read": (types.ReadResourceRequestParams, types.ReadResourceResult),
    }
    for method, answer in answers.items():
        params, result = kinds[method]
        server.add_request_handler(method, params, _handler_v2(answer, result))


def _handler_v2(answer: _Answer, result: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    async def handle(context: Any, params: Any) -> Any:
        told = {} if params is None else params.model_dump(mode="json", by_alias=True)
        # The result's own type knows what else each revision of the protocol wants in it.
        return result.model_validate(await answer(context.request, told))

    return handle


def _register_v1(server: Any, answers: Mapping[str, _Answer]) -> None:
    from mcp import types  # noqa: PLC0415 - version 2 keeps them elsewhere

    kinds: Any = types
    pairs = {
        "tools/list": (kinds.ListToolsRequest, kinds.ListToolsResult),
        "tools/call": (kinds.CallToolRequest, kinds.CallToolResult),
        "resources/list": (kinds.ListResourcesRequest, kinds.ListResourcesResult),
        "resources/templates/list": (
            kinds.ListResourceTemplatesRequest,
            kinds.ListResourceTemplatesResult,
        ),
        "resources/read": (kinds.ReadResourceRequest, kinds.ReadResourceResult),
    }
    for method, answer in answers.items():
        request, result = pairs[method]
        server.request_handlers[request] = _handler_v1(server, answer, result, kinds.ServerResult)


def _handler_v1(server: Any, answer: _Answer, result: Any, wrapped: Any) -> Callable[[Any], Awaitable[Any]]:
    async def handle(message: Any) -> Any:
        told = {} if message.params is None else message.params.model_dump(mode="json", by_alias=True)
        answered = await answer(server.request_context.request, told)
        return wrapped(result.model_validate(answered))

    return handle
