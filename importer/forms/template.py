"""A form as a template for its senders, and what changed in a form since a template of it was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from importer.errors import FormError
from importer.forms.definition import read_form
from importer.forms.form import Form, FormColumn, RuleValue
from importer.forms.labels import normal_title
from importer.forms.plain_words import example, rules, words
from importer.sender import Stamp, Template, TemplateColumn
from importer.sender.template import guide_sheets


def template(
    form: Form, *, version: int | None = None, choices: Mapping[str, Sequence[RuleValue]] | None = None
) -> Template:
    """The template of a form; `choices` are those of lookup columns, by column name."""
    sheet = form.sheet if isinstance(form.sheet, str) else form.name.replace("_", " ").capitalize()
    live = choices or {}
    return Template(
        title=form.name.replace("_", " ").capitalize(),
        description=form.description,
        owners=form.owners,
        sheet=sheet,
        header_row=form.header_row,
        header_rows=form.header_rows,
        columns=tuple(_column(column, form, tuple(live.get(column.name, ()))) for column in form.columns),
        table=form.table_range,
        stamp=Stamp(
            kind="template",
            form=form.name,
            digest=form.digest,
            version=version,
            definition=form.to_dict(),
            sheets=guide_sheets(sheet),
        ),
    )


def _column(column: FormColumn, form: Form, live: tuple[RuleValue, ...]) -> TemplateColumn:
    return TemplateColumn(
        title=column.title,
        type=column.as_read.type,
        required=column.required,
        words=words(column),
        rules=rules(column, form),
        example=example(column),
        minimum=column.minimum,
        maximum=column.maximum,
        choices=column.choices or (live if column.lookup is None or not column.lookup.create else ()),
        max_length=column.max_length,
        scale=column.scale,
    )


def changes_since(stamp: Stamp, form: Form) -> tuple[str, ...]:
    """What a sender must know who filled in an older template: sentences; none when nothing changed for them.

    Only what is seen in the sheet counts: columns, types, required, rules; not the table or the owners.
    """
    try:
        old = read_form(stamp.definition)
    except FormError:  # it was written by another version of this program, or by hand
        return ("its rules were written down in a way that is not read any more",)
    said: list[str] = []
    before = {column.name: column for column in old.columns}
    for column in form.columns:
        was = before.pop(column.name, None)
        if was is None:
            said.append(f'the column "{column.title}" is new{" and required" if column.required else ""}')
            continue
        if normal_title(was.title) != normal_title(column.title):
            said.append(f'the column "{was.title}" is now called "{column.title}"')
        if was.type != column.type:
            said.append(f'"{column.title}" was {words(was)} and is now {words(column)}')
        now = set(rules(column, form)) - set(rules(was, old))
        said += [f'"{column.title}" has a new rule: {rule.rstrip(".")}' for rule in rules(column, form) if rule in now]
    said += [f'the column "{column.title}" is not asked for any more' for column in before.values()]
    return tuple(said)
