"""Each enabled form is an asset: its table, materialized once per import."""

import re
from collections.abc import Iterator

import yaml
from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    MaterializeResult,
    MetadataValue,
    multi_asset,
)
from pydantic import Field

import importer as im
from pipelines.importing import FileConfig, import_file, import_form
from pipelines.resources import Importer
from pipelines.shown import column_schema

GROUP = "forms"


class FormConfig(FileConfig):
    """What a materialization of a form imports."""

    file: str | None = Field(
        default=None,
        description="A workbook below the inbox, or a content hash of the store. Empty: every due job of this form.",
    )


def form_asset(form: im.Form) -> AssetsDefinition:
    """The asset of one form. Nothing due materializes nothing; assets that depend on it run after an import."""

    @multi_asset(
        name=f"import_{form.name}",
        specs=[form_spec(form)],
        pool=f"table_{re.sub('[^A-Za-z0-9_]', '_', form.table)}",
    )
    def imports(
        context: AssetExecutionContext, config: FormConfig, importer: Importer
    ) -> Iterator[MaterializeResult[None]]:
        if config.file is not None:
            yield from import_file(context, importer, form, config.file, config).as_results()
        else:
            yield from import_form(context, importer, form)

    return imports


def form_spec(form: im.Form) -> AssetSpec:
    """What Dagster shows of a form before anything was imported."""
    return AssetSpec(
        key=AssetKey([form.name]),
        group_name=GROUP,
        description=form.description or f"Rows of the form {form.name} in the table {form.table}.",
        owners=[owner(each) for each in form.owners],
        kinds={"excel", "postgres"},
        code_version=form.digest[:12],
        skippable=True,
        metadata={
            "dagster/column_schema": column_schema(form),
            "dagster/table_name": form.table,
            "inbox": form.inbox or f"{form.name}/",
            "key": ", ".join(form.key) or "none",
            "form": MetadataValue.md(
                f"```yaml\n{yaml.safe_dump(form.to_dict(), sort_keys=False, allow_unicode=True)}```"
            ),
        },
    )


def owner(name: str) -> str:
    """An owner as Dagster takes it: an e-mail address, else a team."""
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", name):
        return name
    return "team:" + (re.sub(r"[^A-Za-z0-9_]+", "_", name.removeprefix("team:")).strip("_") or "unnamed")
