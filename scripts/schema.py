"""Write the committed copies of the contract's schemas, or, with --check, say whether they are current."""

from __future__ import annotations

import sys

from perdure.contract.schema import COPIES, documents_of_schema


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    COPIES.mkdir(exist_ok=True)
    for name, content in documents_of_schema().items():
        path = COPIES / name
        if path.exists() and path.read_bytes() == content:
            continue
        stale.append(name)
        if not check:
            path.write_bytes(content)
    for name in stale:
        print(f"{name} {'is not current: run scripts/schema.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
