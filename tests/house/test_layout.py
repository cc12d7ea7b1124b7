"""The shape of the house: names, sizes and places that make one room look like any other."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.house.project import ROOT, files, modules, text, tree

SIZE_WALL = 500
VAGUE = frozenset(
    {"utils", "util", "helpers", "helper", "common", "manager", "misc", "service", "handler", "data", "info"}
)
STATEMENT_ROOMS = sorted(path.stem for path in files() if path.match("sql/statements/*.sql"))


def test_no_module_is_longer_than_the_wall() -> None:
    """A module that passes 500 lines is two."""
    lengths = {
        path: len((text(path) or "").splitlines()) for path in modules("importer", "pipelines", "tests", "benchmarks")
    }

    assert {str(path): length for path, length in lengths.items() if length > SIZE_WALL} == {}


def test_half_of_the_rooms_modules_are_under_200_lines() -> None:
    """The aim is a median module under 200 lines."""
    lengths = sorted(len((text(path) or "").splitlines()) for path in modules("importer", "pipelines"))

    assert lengths[len(lengths) // 2] < 200


def test_every_package_is_installed() -> None:
    """The list of packages in pyproject.toml is that of the folders, and of `sql`, which installs as `importer.sql`."""
    listed = tomllib.loads(text(Path("pyproject.toml")) or "")["tool"]["setuptools"]["packages"]
    folders = {".".join(path.parent.parts) for path in modules("importer", "pipelines")}

    assert listed == sorted(folders | {"importer.sql"})


def test_names_of_files_say_something() -> None:
    """No file or folder is named by a word that says nothing about what is in it."""
    vague = [
        str(path)
        for path in files()
        if path.suffix in {".py", ".sql", ".yaml"}
        if VAGUE & {word for part in path.with_suffix("").parts for word in part.removeprefix("test_").split("_")}
    ]

    assert vague == []


def test_no_test_sleeps() -> None:
    """A test sets the clock, or waits on a condition with a deadline; `ctx.sleep` is the durable one, by the clock."""
    sleeping = [
        f"{path}:{node.lineno}"
        for path in modules("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and _called(node) == "sleep" and ast.unparse(node.func) != "ctx.sleep"
    ]

    assert sleeping == []


def test_no_test_is_switched_off() -> None:
    """A test runs; where the machine cannot do what it needs, a skip says so in a sentence."""
    switched_off = [
        f"{path}:{node.lineno}"
        for path in modules("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"pytest.mark.skip", "pytest.mark.xfail", "pytest.xfail"}
    ]
    wordless = [
        f"{path}:{node.lineno}"
        for path in modules("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.skip"
        if not (node.args and isinstance(node.args[0], ast.Constant) and len(str(node.args[0].value).split()) > 5)
    ]

    assert switched_off + wordless == []


def test_every_test_says_its_rule_in_a_sentence() -> None:
    """A test function has a docstring, which is the rule it holds."""
    wordless = [
        f"{path}:{node.name}"
        for path in modules("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]

    assert wordless == []


def test_no_file_names_a_place_of_one_machine() -> None:
    """Paths of homes and workplaces are nobody else's."""
    machine_path = re.compile(r"(?<![\w.])/(?:root|work|home/(?!ann\b)\w+|Users/\w+)\b")  # Ann is nobody
    naming = [
        f"{path}:{number}"
        for path in files()
        for number, line in enumerate((text(path) or "").splitlines(), start=1)
        if machine_path.search(line)
    ]

    assert naming == []


def test_the_lock_names_no_index_and_every_hash() -> None:
    """Whoever installs says where from; what is installed is said here."""
    lock = text(Path("requirements.lock")) or ""
    packages = re.findall(r"^[a-z0-9][^\s=]*==[^\s;\\]+.*$", lock, re.MULTILINE)
    without_hash = re.findall(r"^[a-z0-9][^\n]*[^\\\n]$", lock, re.MULTILINE)

    assert len(packages) > 50
    assert without_hash == []
    assert not re.search(r"://|^\s*--(?!hash=sha256:)", lock, re.MULTILINE)


def test_statements_stand_in_sql_files() -> None:
    """Outside `db` and the form's own table no module passes a statement as text."""
    written_inline = [
        f"{path}:{node.lineno}"
        for path in modules("importer", "pipelines")
        if path.parts[1] != "db" and path.name != "target.py" and "target" not in path.parts
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and _called(node) in {"execute", "executemany", "copy", "SQL"}
        if node.args and _is_text(node.args[0])
    ]

    assert written_inline == []


@pytest.mark.parametrize("room", STATEMENT_ROOMS)
def test_a_room_of_statements_has_its_module_and_its_tests(room: str) -> None:
    """`sql/statements/x.sql` is used by `importer/x` (or `importer/db/x`) and tested by `tests/*/test_x*.py`."""
    homes = (f"importer/{room}.py", f"importer/{room}/__init__.py", f"importer/db/{room}.py")

    assert any((ROOT / home).is_file() for home in homes), f"no module for sql/statements/{room}.sql"
    named = list((ROOT / "tests").glob(f"*/test_{room}*.py"))
    importing = [path for path in modules("tests") if f"importer.db.{room} import" in (text(path) or "")]
    assert named + importing, f"no tests/database/test_{room}.py"


@pytest.mark.parametrize(
    ("room", "class_name"),
    [
        ("import_job", "Job"),  # the front door's word: `im.Job`
        ("timer_job", "TimerJob"),
        ("task_run", "TaskRun"),
        ("outbox_message", "OutboxMessage"),
    ],
)
def test_a_leased_room_has_its_table_and_its_class(room: str, class_name: str) -> None:
    """`importer/x.py` (or the package) has class `X`; the migrations make the table `xs`."""
    sources = [path for path in modules("importer") if path.with_suffix("").parts[1] == room]
    if not sources:
        return  # the room has not been built yet
    classes = {node.name for path in sources for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}
    migrations = "\n".join(text(path) or "" for path in files() if path.match("sql/migrations/*.sql"))

    assert class_name in classes
    assert re.search(rf"create table (?:rowlease\.)?{room}s\b", migrations)


def test_the_words_of_the_house_are_kept() -> None:
    """Names of functions, classes and parameters use the words of the glossary, not their rivals."""
    rivals = re.compile(r"(?:^|_)(?:ping|acquire|heartbeats?_registry|lock_token|lease_token)(?:$|_)")
    strange = [
        f"{path}:{node.lineno} {node.name}"
        for path in modules("importer", "pipelines")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and rivals.search(node.name)
    ]

    assert strange == []


def test_the_changelog_keeps_its_form() -> None:
    """Keep a Changelog: an Unreleased heading first, then sections of the known names, one line an entry."""
    lines = (text(Path("CHANGELOG.md")) or "").splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    sections = {line.removeprefix("### ") for line in lines if line.startswith("### ")}

    assert lines[0] == "# Changelog"
    assert headings[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[(Unreleased|\d+\.\d+\.\d+)\].*", heading) for heading in headings)
    assert sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
