"""Clients of a Perdure server: `Client`, and `AsyncClient` for asyncio. They need the extra `client`.

```python
with Client("http://localhost:8420", api_key=key) as client:
    memory = client.memory(principal="alice")
    memory.remember("The kettle is blue")
```
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("httpx") is None:
    raise ImportError("perdure.client needs the package httpx: pip install 'perdure[client]'", name="httpx")

from perdure.client.asynchronous.client import AsyncClient
from perdure.client.asynchronous.conversation import AsyncClientConversation
from perdure.client.asynchronous.documents import AsyncClientDocuments
from perdure.client.asynchronous.memory import AsyncClientMemory
from perdure.client.asynchronous.repository import AsyncClientRepository
from perdure.client.asynchronous.store import AsyncClientStore
from perdure.client.synchronous.client import Client
from perdure.client.synchronous.conversation import ClientConversation
from perdure.client.synchronous.documents import ClientDocuments
from perdure.client.synchronous.memory import ClientMemory
from perdure.client.synchronous.repository import ClientRepository
from perdure.client.synchronous.store import ClientStore

__all__ = [
    "AsyncClient",
    "AsyncClientConversation",
    "AsyncClientDocuments",
    "AsyncClientMemory",
    "AsyncClientRepository",
    "AsyncClientStore",
    "Client",
    "ClientConversation",
    "ClientDocuments",
    "ClientMemory",
    "ClientRepository",
    "ClientStore",
]
