"""The command line: `rowlease COMMAND`. It translates, calls the front door, and prints.

Exit codes, for scripts: 0 all rows are in; 1 some rows failed; 2 the workbook or the call was refused (sending it again
as it is changes nothing); 3 the database or the disk (trying again may help); 130 stopped by Ctrl-C.

Results go to standard output, errors to standard error as one sentence without a traceback. With `--json` the output is
one JSON value; its keys are those of `Job` and of the frames, and stay.

```
arguments    the words and their help
workbooks    check import submit
for_sender   template, faults --xlsx
jobs         work jobs show faults cancel retry
undo         undo
tasks        tasks ...
triggers     triggers ..., fire alerts
workflow     workflow ..., approvals ...
forms        forms ...
database     migrate, db ...
output       tables, JSON and CSV
```
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence

from importer.cli import database, for_sender, forms, jobs, tasks, triggers, undo, workbooks, workflow
from importer.cli.arguments import parser
from importer.errors import DatabaseError, ImporterError, LeaseLostError, StoreError, WorkbookError

ALL_IN = 0
ROWS_FAILED = 1
REFUSED = 2
TRY_AGAIN = 3
STOPPED = 128 + signal.SIGINT

#: Errors after which the same call may work, once the database or the disk does.
_OF_THE_WORLD = (DatabaseError, StoreError, LeaseLostError, OSError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        code = _command(arguments)(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("stopped; what was committed stands, and the same command goes on from there", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; nothing may be flushed into its pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ALL_IN
    except _OF_THE_WORLD as error:
        print(f"rowlease: {_sentence(error)}", file=sys.stderr)
        return TRY_AGAIN
    except WorkbookError as error:
        file = arguments.file.name
        print(f"rowlease: {error if file in str(error) else f'{file}: {error}'}", file=sys.stderr)
        return REFUSED
    except ImporterError as error:
        print(f"rowlease: {error}", file=sys.stderr)
        return REFUSED
    return code


def _command(arguments: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "demo": _demo,
        "template": for_sender.template,
        "check": workbooks.check,
        "import": workbooks.import_here,
        "submit": workbooks.submit,
        "work": jobs.work,
        "jobs": jobs.list_jobs,
        "show": jobs.show,
        "faults": jobs.faults,
        "cancel": jobs.cancel,
        "retry": jobs.retry,
        "undo": undo.run,
        "tasks": tasks.run,
        "triggers": triggers.run,
        "fire": triggers.fire,
        "alerts": triggers.alerts,
        "workflow": workflow.run,
        "approvals": workflow.approvals,
        "forms": forms.run,
        "migrate": database.migrate,
        "db": database.run,
    }
    return commands[arguments.command]


def _demo(arguments: argparse.Namespace) -> int:
    from importer import demo  # noqa: PLC0415 - a sibling, which only this command needs

    return demo.run(rows=arguments.rows, folder=arguments.folder)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'the disk'}: {(error.strerror or type(error).__name__).lower()}"
    return str(error)
