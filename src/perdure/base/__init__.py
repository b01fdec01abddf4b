"""Time, ids, canonical values: what everything else is built from."""
