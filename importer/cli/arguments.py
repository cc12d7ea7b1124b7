"""The words of the command line: commands, options and what their help says. Nothing is done here."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

from importer.cli import workflow_arguments

_DESCRIPTION = """\
Excel forms into PostgreSQL: exact, resumable, duplicate-free.

A form (a YAML or JSON file) says what a valid sheet is and which table it goes into.
Good rows go in; each bad cell is reported with its sheet row, column, rule and value.
"""

_EPILOG = """\
first steps:
  rowlease demo                                       see an import killed and resumed
  rowlease check march.xlsx --form site_report.yaml   what would be refused, and why
  rowlease import march.xlsx --form site_report.yaml  the same, and the good rows go in

exit codes:
  0  all rows are in            2  the workbook or the call was refused
  1  some rows failed           3  the database or the disk: try again

The database is DATABASE_URL, else libpq's PG* variables, else a PostgreSQL of your own that starts by itself.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line; `command` names what was chosen."""
    top = argparse.ArgumentParser(
        prog="rowlease", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"rowlease {version('rowlease')}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    _demo(commands)
    _template(commands)
    _check(commands)
    _import(commands)
    _submit(commands)
    _work(commands)
    _jobs(commands)
    _tasks(commands)
    _triggers(commands)
    workflow_arguments.add(commands)
    _forms(commands)
    _database(commands)
    return top


_Commands = argparse._SubParsersAction  # noqa: SLF001 - the only name argparse has for it


def _add(
    commands: _Commands[argparse.ArgumentParser], name: str, summary: str, more: str = ""
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.{' ' if more else ''}{more}",
        formatter_class=argparse.HelpFormatter,
    )


def _demo(commands: _Commands[argparse.ArgumentParser]) -> None:
    demo = _add(
        commands,
        "demo",
        "import a workbook, kill the importer in the middle, resume",
        "Writes a workbook of site reports with about forty bad cells, imports it with a worker that is killed with "
        "SIGKILL, lets another worker resume, and proves that every row is there once. The table "
        "rowlease_demo.site_reports is dropped first.",
    )
    demo.add_argument("--rows", type=_positive, default=30_000, metavar="N", help="rows of the workbook (30,000)")
    demo.add_argument("--folder", type=Path, metavar="DIR", help="where to write it (demo in the data folder)")


def _template(commands: _Commands[argparse.ArgumentParser]) -> None:
    template = _add(
        commands,
        "template",
        "write an empty workbook for senders to fill in",
        "It has the form's titles, notes with the rules, number formats, dropdowns and a sheet of guidance.",
    )
    template.add_argument("file", type=Path, metavar="FILE", help="the workbook to write (.xlsx)")
    _form(template)
    template.add_argument("--no-database", action="store_true", help="use none: the stamp then has no version")
    template.add_argument("--overwrite", action="store_true", help="write over a file that is there")
    _json(template)


def _check(commands: _Commands[argparse.ArgumentParser]) -> None:
    check = _add(
        commands,
        "check",
        "say what an import would refuse, without importing",
        "Needs no database, and then names the rules it could not check.",
    )
    _workbook(check)
    check.add_argument("--database", action="store_true", help="also check what needs the database; nothing is kept")
    check.add_argument("--csv", metavar="FILE", help="write all faults to a CSV file (- for standard output)")
    _limit(check, "faults")
    _json(check)


def _import(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(
        commands,
        "import",
        "import a workbook here and now",
        "Sending the same file again changes nothing and names the job that had it. Ctrl-C stops after the running "
        "batch; the same command goes on from there.",
    )
    _workbook(command)
    _options(command)
    command.add_argument("--no-create", action="store_true", help="refuse if the table is missing (default: create it)")
    command.add_argument("--quiet", action="store_true", help="show no progress bar")
    _limit(command, "faults")
    _json(command)


def _submit(commands: _Commands[argparse.ArgumentParser]) -> None:
    submit = _add(commands, "submit", "queue a workbook for a worker", "A worker (`rowlease work`) imports it.")
    _workbook(submit)
    _options(submit)
    submit.add_argument("--key", metavar="TEXT", help="a name of your own for this submission; the same one is one job")
    submit.add_argument("--priority", type=int, choices=range(4), default=2, help="0 first to 3 last (2)")
    submit.add_argument("--create", action="store_true", help="let the worker create the table if it is missing")
    _json(submit)


def _work(commands: _Commands[argparse.ArgumentParser]) -> None:
    work = _add(
        commands,
        "work",
        "run queued jobs until stopped",
        "SIGTERM or Ctrl-C stops after the running batch and gives the job back with what was committed.",
    )
    work.add_argument("--once", action="store_true", help="run what is due now, then exit")
    work.add_argument("--limit", type=_positive, metavar="N", help="with --once: at most so many jobs")
    _task_modules(work)
    _json(work)


def _jobs(commands: _Commands[argparse.ArgumentParser]) -> None:
    jobs = _add(commands, "jobs", "list import jobs, the newest first")
    jobs.add_argument("--form", metavar="NAME", help="only jobs of this form")
    statuses = ("pending", "running", "success", "partial_success", "failed", "cancelled")
    jobs.add_argument(
        "--status", choices=statuses, metavar="STATUS", help=f"only jobs in this status: {', '.join(statuses)}"
    )
    jobs.add_argument("--limit", type=_positive, default=20, metavar="N", help="at most so many (20)")
    _json(jobs)

    show = _add(commands, "show", "show one job: counts, times, attempts, faults by rule")
    _job(show)
    _json(show)

    faults = _add(
        commands,
        "faults",
        "list the bad cells of a job",
        "In CSV a text that a spreadsheet would take for a formula gets an apostrophe in front; JSON has it as it is.",
    )
    _job(faults)
    faults.add_argument("--csv", metavar="FILE", help="write all of them to a CSV file (- for standard output)")
    faults.add_argument("--xlsx", metavar="FILE", type=Path, help="write the sender's workbook, bad cells marked")
    faults.add_argument("--only-failed", action="store_true", help="with --xlsx: only the failed rows")
    _limit(faults, "faults")
    _json(faults)

    cancel = _add(
        commands, "cancel", "cancel an open job", "A running one stops at its next batch; committed rows stay."
    )
    _job(cancel)
    _json(cancel)

    undo = _add(
        commands,
        "undo",
        "take an import back",
        "Rows it put in go, rows it updated get back what they held; rows that somebody changed since are kept and "
        "listed. Exit code 1 when some were kept.",
    )
    _job(undo)
    undo.add_argument("--dry-run", action="store_true", help="change nothing, say what would be done")
    undo.add_argument("--queue", action="store_true", help="let a worker do it")
    undo.add_argument("--quiet", action="store_true", help="show no progress bar")
    _limit(undo, "kept rows")
    _json(undo)

    retry = _add(
        commands, "retry", "queue a failed or cancelled job again", "It goes on from its cursor with all its attempts."
    )
    _job(retry)
    _json(retry)


def _tasks(commands: _Commands[argparse.ArgumentParser]) -> None:
    tasks = _add(commands, "tasks", "list, show, enqueue, signal, cancel and retry durable tasks")
    actions = tasks.add_subparsers(title="actions", dest="action", metavar="ACTION")
    tasks.set_defaults(action="list", json=False, task=None, status=None, limit=20)

    listed = _add(actions, "list", "list task runs, the newest first (the default)")
    listed.add_argument("--task", metavar="NAME", help="only runs of this task")
    statuses = ("pending", "running", "succeeded", "failed", "cancelled")
    listed.add_argument("--status", choices=statuses, metavar="STATUS", help=f"only: {', '.join(statuses)}")
    listed.add_argument("--limit", type=_positive, default=20, metavar="N", help="at most so many (20)")
    _json(listed)
    enqueue = _add(actions, "enqueue", "let a worker run a task")
    enqueue.add_argument("task", metavar="TASK", help="its name")
    enqueue.add_argument("--input", metavar="JSON", help="its input")
    enqueue.add_argument("--key", metavar="TEXT", help="a name of your own for this run; the same one is one run")
    enqueue.add_argument("--priority", type=int, choices=range(4), default=2, help="0 first to 3 last (2)")
    _task_modules(enqueue)
    _json(enqueue)
    told = _add(actions, "signal", "tell a run that something happened", "The first fact of a name stands.")
    told.add_argument("run", type=int, metavar="RUN", help="number of the run")
    told.add_argument("fact", metavar="FACT", help="name of the fact")
    told.add_argument("--payload", metavar="JSON", help="what came with it")
    _json(told)
    for name, summary in (
        ("show", "show one run: attempts, facts, outside operations"),
        ("cancel", "cancel an open run"),
        ("retry", "let a failed or cancelled run wait again; finished steps stay finished"),
    ):
        action = _add(actions, name, summary)
        action.add_argument("run", type=int, metavar="RUN", help="number of the run")
        _json(action)


def _triggers(commands: _Commands[argparse.ArgumentParser]) -> None:
    triggers = _add(commands, "triggers", "list, show, put, enable, disable and remove triggers")
    actions = triggers.add_subparsers(title="actions", dest="action", metavar="ACTION")
    triggers.set_defaults(action="list", json=False)
    _json(_add(actions, "list", "list triggers (the default)"))
    put = _add(actions, "put", "write triggers from a file", "One that is there under its name is changed.")
    put.add_argument("file", type=Path, metavar="FILE", help="YAML or JSON: one trigger, or a list of them")
    _json(put)
    for name, summary in (
        ("show", "show one trigger and its newest firings"),
        ("enable", "switch a trigger on"),
        ("disable", "switch a trigger off; what it started goes on"),
        ("remove", "remove a trigger with its memory of what fired"),
    ):
        action = _add(actions, name, summary)
        action.add_argument("trigger", metavar="TRIGGER", help="its name")
        _json(action)

    fire = _add(commands, "fire", "say that something happened; triggers of this event fire")
    fire.add_argument("event", metavar="EVENT", help="its name")
    fire.add_argument("--payload", metavar="JSON", help="what came with it")
    fire.add_argument("--key", metavar="TEXT", help="a name of your own: with the same one each trigger fires once")
    _json(fire)
    _json(_add(commands, "alerts", "list what is wrong now; exit code 1 when anything is"))


def _task_modules(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--tasks", action="append", default=[], metavar="MODULE", help="a Python module that defines tasks; repeatable"
    )


def _forms(commands: _Commands[argparse.ArgumentParser]) -> None:
    forms = _add(commands, "forms", "list, show, store, enable and disable forms")
    actions = forms.add_subparsers(title="actions", dest="action", metavar="ACTION")
    forms.set_defaults(action="list", json=False)

    _json(_add(actions, "list", "list the stored forms (the default)"))
    show = _add(actions, "show", "print a form as data", "It can be saved to a file and used as --form.")
    show.add_argument("form", metavar="FORM", help="a stored form's name, or a file to read and check")
    _json(show)
    store = _add(
        actions, "store", "store a form, so that it can be named", "A form that differs becomes the next version."
    )
    store.add_argument("form", metavar="FILE", help="YAML or JSON file")
    _json(store)
    for name, summary in (("enable", "let a form take imports again"), ("disable", "let a form take no more imports")):
        action = _add(actions, name, summary, "Jobs that were submitted before go on.")
        action.add_argument("form", metavar="NAME", help="name of a stored form")
        _json(action)


def _database(commands: _Commands[argparse.ArgumentParser]) -> None:
    migrate = _add(
        commands,
        "migrate",
        "bring the database to the schema of this version",
        "Safe to run again, and by two at once.",
    )
    migrate.add_argument("--check", action="store_true", help="change nothing; exit 3 when something is to be done")
    _json(migrate)

    database = _add(commands, "db", "the database: its address, and the PostgreSQL of your own")
    actions = database.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    url = _add(
        actions,
        "url",
        "print the address, as psql takes it",
        "A PostgreSQL of your own is started, and runs until `db stop`.",
    )
    _json(url)
    _json(_add(actions, "start", "start the PostgreSQL of your own, to run until `db stop`"))
    _json(_add(actions, "stop", "stop the PostgreSQL of your own, whoever uses it"))
    _json(_add(actions, "status", "say which database is used and whether it answers"))


def _workbook(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="the workbook (.xlsx or .xlsm)")
    _form(command)
    command.add_argument("--sheet", metavar="NAME", help="the sheet to read, instead of the form's own choice")


def _form(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--form",
        required=True,
        metavar="F",
        help="a YAML or JSON file, or a form's name (in the folder of forms, then stored)",
    )


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--corrects",
        type=_positive,
        metavar="JOB",
        help="the import whose failed rows come again, corrected (a fault workbook names it by itself)",
    )
    command.add_argument(
        "--only-changes", action="store_true", help="leave rows that are in the table as they are, import the others"
    )
    command.add_argument("--force", action="store_true", help="make a new job even if this content had one")
    command.add_argument(
        "--replace",
        action="store_true",
        help="take the place of the rows this content gave under another version of the form",
    )


def _job(command: argparse.ArgumentParser) -> None:
    command.add_argument("job", type=_positive, metavar="JOB", help="number of the job, see `rowlease jobs`")


def _limit(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--limit", type=_positive, default=10, metavar="N", help=f"show at most so many {what} (10)")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, for a program to read")


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number
