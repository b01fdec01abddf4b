"""The OpenAPI description against a server: no fault, no undocumented status, no reply of another form.

`pytest -m soak` sends many more requests.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode

from perdure.contract.schema import openapi

from .running_server import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc"),
]
QUIET = list(HealthCheck)
CONFIG = {
    # A schema tells shapes; a blank query or an unknown filter operator fits, and is refused with 422.
    "checks": {
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "400", "401", "403", "404", "409", "422", "507"]
        }
    },
}


@pytest.fixture(scope="module")
def described(tmp_path_factory) -> Any:
    store = tmp_path_factory.mktemp("described") / "store"
    with running(store, auth=True, default_principal="ada") as server:
        token = (store / "server.token").read_text().strip()
        config = schemathesis.Config.from_dict(CONFIG)
        url = f"http://127.0.0.1:{server.port}/openapi.json"
        yield schemathesis.openapi.from_url(url, config=config), {"Authorization": f"Bearer {token}"}


@schemathesis.serializer("application/x-ndjson")
def as_lines(context: Any, value: Any) -> bytes:
    """Send text as it is."""
    del context
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


OPERATIONS = [(path, method) for path, item in openapi()["paths"].items() for method in item]
NAMED = pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=[f"{m} {p}" for p, m in OPERATIONS])
MODES = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fits", "misfits"]
)


def asked(
    described: tuple[Any, dict[str, str]], path: str, method: str, mode: GenerationMode, examples: int
) -> None:
    """Send an operation requests that fit its schema, or do not, and check each reply in all ways."""
    schema, headers = described

    # The same requests each time: a header that is made wrong is replaced by the right one, so that now and then a
    # request counts as a misfit that is none.
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=QUIET, database=None, derandomize=True
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def hold(case: Any) -> None:
        case.call_and_validate(headers=headers)

    try:
        hold()
    except Unsatisfiable:  # there is nothing that could be wrong
        assert mode is GenerationMode.NEGATIVE


@NAMED
@MODES
def test_every_operation_does_as_it_is_described(described, path, method, mode):
    if mode is GenerationMode.NEGATIVE and path.endswith("/store/import"):
        mode = GenerationMode.POSITIVE  # its body is lines of text, which any bytes are
    asked(described, path, method, mode, 4)


@pytest.mark.soak
@NAMED
@MODES
def test_every_operation_does_as_it_is_described_for_long(described, path, method, mode):
    if mode is GenerationMode.NEGATIVE and path.endswith("/store/import"):
        mode = GenerationMode.POSITIVE
    asked(described, path, method, mode, 500)


def walked(described: Any, examples: int) -> None:
    schema, headers = described

    class Walk(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": headers}

    run_state_machine_as_test(
        Walk,
        settings=settings(
            max_examples=examples, stateful_step_count=6, deadline=None, suppress_health_check=QUIET
        ),
    )


def test_what_one_operation_answers_can_be_asked_of_the_next(described):
    walked(described, 4)


@pytest.mark.soak
def test_what_one_operation_answers_can_be_asked_of_the_next_for_long(described):
    walked(described, 300)
