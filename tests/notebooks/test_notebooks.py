"""The notebooks run from top to bottom and can be read; the one that needs Dagster is run by `tests/pipelines`."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.house.project import ROOT
from tests.notebooks.running import outputs, run

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

#: Lines of code that a cell may have: a screen.
SCREEN = 35


@pytest.fixture
def own_database(conninfo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the notebook's kernel use a database and a store of the test's own."""
    monkeypatch.setenv("DATABASE_URL", conninfo)
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return tmp_path


@pytest.mark.parametrize("name", ["1_read_and_check", "2_write_a_form"])
def test_a_notebook_without_a_database(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and checking need none, and start none."""
    monkeypatch.setenv("ROWLEASE_DATA_FOLDER", str(tmp_path / "data"))

    shown = outputs(run(ROOT / f"notebooks/{name}.ipynb", tmp_path))

    assert "pattern" in shown or "choice" in shown
    assert not (tmp_path / "data").exists()


def test_the_killed_import_is_resumed(own_database: Path) -> None:
    """Killed after four batches, resumed after them, each row counted once."""
    shown = outputs(run(ROOT / "notebooks/3_import_kill_resume.ipynb", own_database))

    assert "-9" in shown
    assert "('running', 4000, 3960, 40)" in shown
    assert "(True, 'partial_success', 10000)" in shown
    assert "({'rows': 9900, 'meters': 9900}, 100)" in shown


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_the_whole_loop(own_database: Path) -> None:
    """Template, faults, the corrected file, undo: the counts are those of the story, and the table is as it was."""
    shown = outputs(run(ROOT / "notebooks/5_the_whole_loop.ipynb", own_database))

    assert "('partial_success', 4, 2)" in shown
    assert 'did you mean "steel"?' in shown
    assert "(True, 2, 1, 3, 1)" in shown
    assert "1 1 0" in shown
    assert "('undo', 2, 1, 0)" in shown
    assert "('import', 'partial_success', True)" in shown
    assert "('undo', 'success', False)" in shown


def test_a_workflow_waits_without_waiting(own_database: Path) -> None:
    """Asked, loaded, and ten minutes later by the database's clock reminded."""
    shown = outputs(run(ROOT / "notebooks/6_workflow.ipynb", own_database))

    assert "(97, 3)" in shown
    assert "[('ask', 'approval', ('controller',))]" in shown
    assert "(1, 97)" in shown
    assert "(1, 'completed')" in shown
    assert "('remind', 'passed', '3 rows are still missing')" in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_readable(path: Path) -> None:
    """Prose first, small cells, committed with its outputs, the front door only, and no place of one machine."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]

    assert notebook.cells[0].cell_type == "markdown"
    assert all(len(cell.source.splitlines()) <= SCREEN for cell in code)
    assert all(cell.execution_count for cell in code)
    assert not any("from importer." in cell.source or "import importer." in cell.source for cell in code)
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
