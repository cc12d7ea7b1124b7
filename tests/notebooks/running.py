"""Runs a notebook from top to bottom. `ROWLEASE_KEEP_OUTPUTS=1` writes its outputs back into it."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a fresh kernel whose working directory is `folder`; an error in a cell is raised."""
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}, record_timing=False
    ).execute()
    if os.environ.get("ROWLEASE_KEEP_OUTPUTS"):
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> str:
    """Return everything that the cells show as text."""
    return "\n".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
