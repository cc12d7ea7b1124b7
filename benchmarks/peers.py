"""The peers' environment: made from the hashed lock, and again when the lock changes."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_LOCK: Final = Path(__file__).with_name("requirements.lock")
_FOLDER: Final = ROOT / ".venv-peers"
#: Packages whose versions stand under the table.
_NAMED: Final = (
    "fastexcel",
    "polars",
    "adbc-driver-postgresql",
    "pandas",
    "python-calamine",
    "sqlalchemy",
    "dlt",
    "xlsx2csv",
)


def peers_python() -> str:
    """Return the interpreter of the peers' environment, which is made now when it is not there."""
    python = _FOLDER / "bin" / "python"
    stamp = _FOLDER / ".lock-digest"
    digest = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        print("Setting up .venv-peers (once, about a minute) ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(_FOLDER)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*install, "--require-hashes", "-r", str(_LOCK)], check=True)
        stamp.write_text(digest)
    return str(python)


def peer_versions(python: str) -> dict[str, str]:
    """Return the versions of the peers by name."""
    ask = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    answer = subprocess.run([python, "-c", ask, *_NAMED], check=True, stdout=subprocess.PIPE, text=True).stdout
    versions: dict[str, str] = json.loads(answer)
    if ogr2ogr := shutil.which("ogr2ogr"):
        words = subprocess.run([ogr2ogr, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
        versions["ogr2ogr"] = words.split(",")[0]
    return versions
