"""What every result file says first: the machine, the versions, the disk's own speed."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from importlib import metadata
from pathlib import Path

import apsw

from perdure.lexical.index import kernel_name

PACKAGES = ("perdure", "numpy", "msgspec", "apsw-sqlite3mc", "pystemmer", "pyroaring", "tantivy", "bm25s")


def describe(folder: Path) -> str:
    """Return a few lines for the head of a result file."""
    versions = ", ".join(f"{name} {version}" for name in PACKAGES if (version := _version(name)))
    return "\n".join(
        [
            f"machine: {platform.machine()}, {os.cpu_count()} processors ({_processor()}), {platform.system()} "
            f"{platform.release()}",
            f"python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, kernel {kernel_name()}",
            f"packages: {versions}",
            f"fsync of 4 KiB appends here: {fsync_p50_ms(folder):.3f} ms in the median; load when started: "
            f"{os.getloadavg()[0]:.1f}",
        ]
    )


def fsync_p50_ms(folder: Path, count: int = 200) -> float:
    """Return the median time of an append of 4 KiB and its fsync."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(count):
            file.write(bytes(4096))
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    return sorted(times)[count // 2] * 1000


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"
