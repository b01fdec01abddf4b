"""Every limit of nodes and change sets, with its one home. Lengths of texts are in bytes of UTF-8."""

from __future__ import annotations

IDENTIFIER_BYTES_MAX = 256  # ids of nodes and events, keys, contexts, actors, targets of relations
CONTENT_BYTES_MAX = 65_536
NODE_QUERY_BYTES_MAX = 65_536
URI_BYTES_MAX = 2_048
DIGEST_BYTES_MAX = 256
QUOTE_BYTES_MAX = 65_536
REASON_BYTES_MAX = 4_096
SUBJECT_BYTES_MAX = 1_024
LABEL_KEY_BYTES_MAX = 128
LABEL_VALUE_BYTES_MAX = 1_024
EVIDENCE_MAX = 64  # of one node
RELATIONS_MAX = 256
LABELS_MAX = 64
OPERATIONS_MAX = 128  # of one change set
CLOSURE_MAX = 65_536  # nodes that the check of one change set looks at
QUERY_LIMIT_MAX = 100
QUERY_LIMIT_DEFAULT = 20
SNAPSHOT_NODES_MAX = 100_000
SNAPSHOT_BYTES_MAX = 268_435_456
CHANGES_LIMIT_MAX = 1_000
CHANGES_LIMIT_DEFAULT = 100
