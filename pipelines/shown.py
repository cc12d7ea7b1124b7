"""What people see of an import in Dagster: counts, faults as a table, faults by rule as a picture."""

import base64
import html
from collections.abc import Mapping
from typing import Any

from dagster import MetadataValue, TableColumn, TableColumnConstraints, TableRecord, TableSchema

import importer as im

#: Faults that are shown with an import; all of them are in the database.
FAULTS_SHOWN = 50

_FAULT_COLUMNS = TableSchema(
    columns=[
        TableColumn("source_row", "int", description="row of the sheet"),
        TableColumn("column", "string", description="column of the form"),
        TableColumn("rule", "string", description="which rule was broken"),
        TableColumn("value", "string", description="what stands in the cell"),
        TableColumn("message", "string"),
    ]
)


def import_metadata(job: im.Job, *, db: im.Database, run_id: str) -> dict[str, MetadataValue[Any]]:
    """What is shown with the materialization of one import."""
    seconds = job.duration.total_seconds() if job.duration else 0.0
    shown: dict[str, MetadataValue[Any]] = {
        "dagster/row_count": MetadataValue.int(job.success_rows),
        "import_job": MetadataValue.int(job.id),
        "status": MetadataValue.text(job.status.replace("_", " ")),
        "file": MetadataValue.text(job.file_name),
        "rows": MetadataValue.int(job.cursor),
        "failed_rows": MetadataValue.int(job.failed_rows),
        "skipped_rows": MetadataValue.int(job.skipped_rows),
        "duration_s": MetadataValue.float(round(seconds, 3)),
        "rows_per_second": MetadataValue.int(round(job.cursor / seconds) if seconds else 0),
        "attempts": MetadataValue.int(job.attempt_count),
        "form_version": MetadataValue.int(job.form_version),
        "content_hash": MetadataValue.text(job.content_hash),
        "run": MetadataValue.dagster_run(run_id),
        "look_closer": MetadataValue.md(f"`rowlease show {job.id}`, `rowlease faults {job.id} --csv faults.csv`"),
    }
    if job.last_error:
        shown["error"] = MetadataValue.text(job.last_error)
    by_rule = im.faults_by_rule(job, db=db)
    if by_rule:
        shown["faults_by_rule"] = MetadataValue.md(rule_picture(by_rule))
        shown["faults"] = fault_table(job, db=db)
    return shown


def fault_table(job: im.Job, *, db: im.Database) -> MetadataValue[Any]:
    """The first faults of a job in sheet order."""
    rows = im.faults(job, db=db, limit=FAULTS_SHOWN).to_dicts()
    records = [TableRecord({name: "" if value is None else value for name, value in row.items()}) for row in rows]
    return MetadataValue.table(records=records, schema=_FAULT_COLUMNS)


def rule_picture(by_rule: Mapping[str, int]) -> str:
    """Bars of the faults by rule as Markdown: a picture of a few hundred bytes, and the same in words."""
    most = max(by_rule.values())
    lines = []
    for at, (rule, count) in enumerate(by_rule.items()):
        top, width = at * 22, max(2, round(200 * count / most))
        lines.append(
            f'<text x="122" y="{top + 15}" text-anchor="end">{html.escape(rule)}</text>'
            f'<rect x="130" y="{top + 3}" width="{width}" height="16" rx="2" fill="#d9534f"/>'
            f'<text x="{136 + width}" y="{top + 15}">{count:,}</text>'
        )
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="420" height="{len(by_rule) * 22}" font-family="sans-serif" '
        f'font-size="12" fill="#333">{"".join(lines)}</svg>'
    )
    words = ", ".join(f"{rule} {count:,}" for rule, count in by_rule.items())
    return f"![{words}](data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()})"


def column_schema(form: im.Form) -> TableSchema:
    """The columns of a form as Dagster shows those of a table."""
    return TableSchema(
        columns=[
            TableColumn(
                column.name,
                column.type,
                description=column.title,
                constraints=TableColumnConstraints(
                    nullable=not (column.required or column.name in form.key),
                    unique=column.unique,
                    other=_rules(column),
                ),
            )
            for column in form.columns
        ]
    )


def _rules(column: im.FormColumn) -> list[str]:
    rules = {
        "at least": column.minimum,
        "at most": column.maximum,
        "one of": ", ".join(str(choice) for choice in column.choices) or None,
        "no longer than": column.max_length,
        "matches": column.pattern,
    }
    return [f"{name} {value}" for name, value in rules.items() if value is not None]
