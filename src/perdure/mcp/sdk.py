"""The one place that knows the official SDK, in its versions 1 and 2: a low-level server around a Service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any

from perdure.dispatch import Caller
from perdure.errors import InvalidRequest, NotFound, PerdureError
from perdure.mcp import resources
from perdure.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, encoded, refused
from perdure.mcp.service import Service, internal

try:
    import anyio
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
_NOT_FOUND = -32002  # a resource's, by the protocol
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
        return await _carried_out(run, work, INVALID_PARAMS)

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


class _Early:
    """What clients asked before the session had begun: the SDK refuses it, and does not say why."""

    def __init__(self) -> None:
        self._has_begun = False
        self._ids: set[int | str] = set()

    def read(self, message: JsonObject) -> None:
        """Note what the client sent."""
        method = message.get("method")
        if method == "notifications/initialized":
            self._has_begun = True
        elif not self._has_begun and "id" in message and method not in (None, "initialize", "ping"):
            self._ids.add(message["id"])

    def told(self, line: str) -> str:
        """Return a line to the client, with the reason in the place of a refusal that has none."""
        if not self._ids:
            return line
        reply = json.loads(line)
        if reply.get("id") not in self._ids or "method" in reply:
            return line
        self._ids.discard(reply["id"])
        fault = reply.get("error", {})
        if fault.get("code") != INVALID_PARAMS or fault.get("data"):
            return line
        error = InvalidRequest(
            "the session has not begun: send initialize first, then notifications/initialized"
        )
        return encoded(refused(reply["id"], INVALID_PARAMS, error).reply)


async def serve_messages(
    server: Any, messages: AsyncIterable[JsonObject], write: Callable[[str], Awaitable[None]]
) -> None:
    """Serve one client until its messages end.

    The SDK's own transport reads lines, and says nothing to whoever waits for an answer to one that it cannot read.

    Args:
        server: of `make_server`.
        messages: that were judged.
        write: takes lines, one after the other.
    """
    into, read = anyio.create_memory_object_stream[Any](0)
    sent, out = anyio.create_memory_object_stream[Any](0)
    early = _Early()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_on, messages, into, write, early)
        tasks.start_soon(_pass_out, out, write, early)
        await server.run(read, sent, server.create_initialization_options())


async def _pass_on(messages: Any, into: Any, write: Callable[[str], Awaitable[None]], early: _Early) -> None:
    from mcp.shared.message import SessionMessage  # noqa: PLC0415 - only this transport needs it

    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the server has ended
        async with into:
            async for message in messages:
                try:
                    typed = _typed(message)
                except ValueError:
                    if "method" in message and "id" in message:
                        error = InvalidRequest("the message is none of the Model Context Protocol")
                        await write(encoded(refused(message["id"], INVALID_REQUEST, error).reply))
                    continue
                early.read(message)
                await into.send(SessionMessage(typed))


async def _pass_out(out: Any, write: Callable[[str], Awaitable[None]], early: _Early) -> None:
    left_out = (
        {"exclude_unset": True} if _IS_V2 else {"exclude_none": True}
    )  # as the SDK's own transport does
    async with out:
        async for sent in out:
            try:
                line = sent.message.model_dump_json(by_alias=True, **left_out) + "\n"
            except ValueError as error:  # what cannot be written must not end the server
                failed = internal("writing a reply", error)
                line = encoded(refused(getattr(sent.message, "id", None), INTERNAL_ERROR, failed).reply)
            await write(early.told(line))


def _typed(message: JsonObject) -> Any:
    """Return a message as the SDK has it. Raises ValueError where it takes none such."""
    if _IS_V2:
        import mcp_types  # noqa: PLC0415 - version 1 has none

        return mcp_types.jsonrpc_message_adapter.validate_python(message, by_name=False)
    from mcp import types  # noqa: PLC0415 - version 2 keeps them elsewhere

    json.dumps(message, allow_nan=False)  # it would make null of a number that is not finite
    wrapped: Any = types.JSONRPCMessage
    return wrapped.model_validate(message)


async def _carried_out(run: Run, work: Callable[[], JsonObject], absent: int) -> JsonObject:
    """Return what the work gives; what it raises is an error of the protocol, and the server lives on."""
    try:
        return await run(work)
    except NotFound as error:
        raise _error(absent, error) from None
    except PerdureError as error:
        raise _error(INVALID_PARAMS if isinstance(error, InvalidRequest) else INTERNAL_ERROR, error) from None
    except Exception as error:  # noqa: BLE001 - as in Service.call, for what is no tool
        raise _error(INTERNAL_ERROR, internal("the server", error)) from None


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
        told = {} if params is None else params.model_dump(by_alias=True)
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
        told = {} if message.params is None else message.params.model_dump(by_alias=True)
        answered = await answer(server.request_context.request, told)
        return wrapped(result.model_validate(answered))

    return handle
