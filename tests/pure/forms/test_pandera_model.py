"""A form from a pandera model: what a form has words for, and nothing dropped in silence."""

from __future__ import annotations

from typing import Annotated

import pandera.polars as pa
import polars as pl
import pytest

from importer.errors import FormError
from importer.forms import Form


class SiteReport(pa.DataFrameModel):
    """A model with every check that a form can say."""

    site: str = pa.Field(str_matches=r"[A-Z]{3}", title="Site code", unique=True)
    weather: str = pa.Field(isin=["dry", "rain"], nullable=True)
    note: str = pa.Field(str_length={"max_value": 20}, nullable=True)
    crew: int = pa.Field(gt=0, le=500)
    floor: pl.Int8 = pa.Field(ge=-5)
    cost: Annotated[pl.Decimal, 12, 2] = pa.Field(in_range={"min_value": 0, "max_value": 10}, nullable=True)
    day: pl.Date
    at: Annotated[pl.Datetime, "us", None] = pa.Field(nullable=True)
    done: bool = pa.Field(nullable=True)


def test_a_model_becomes_the_form_that_says_the_same() -> None:
    """Types, nullability, uniqueness and checks are carried over."""
    form = Form.from_model(SiteReport, table="site_reports", key=["day", "site"], sheet="Report")
    site = {"name": "site", "title": "Site code", "type": "text", "pattern": "^(?:[A-Z]{3})", "unique": True}

    assert form == Form.from_dict(
        {
            "name": "SiteReport",
            "table": "site_reports",
            "sheet": "Report",
            "description": form.description,
            "key": ["day", "site"],
            "columns": [
                {**site, "required": True},
                {"name": "weather", "type": "text", "choices": ["dry", "rain"]},
                {"name": "note", "type": "text", "max_length": 20},
                {"name": "crew", "type": "integer", "min": 1, "max": 500, "required": True},
                {"name": "floor", "type": "integer", "min": -5, "max": 127, "required": True},
                {"name": "cost", "type": "decimal", "precision": 12, "scale": 2, "min": 0, "max": 10},
                {"name": "day", "type": "date", "required": True},
                {"name": "at", "type": "datetime"},
                {"name": "done", "type": "boolean"},
            ],
        }
    )  # fmt: skip


def test_what_a_form_cannot_say_is_refused() -> None:
    """Code, zones, exclusive bounds of fractions and types without a word are named, all at once."""
    schema = pa.DataFrameSchema(
        {
            "a": pa.Column(pl.Int64, pa.Check(lambda _: True, name="even")),
            "b": pa.Column(pl.Datetime("us", "UTC")),
            "c": pa.Column(pl.Float64, pa.Check.gt(0)),
            "d": pa.Column(pl.List(pl.Int64)),
        },
        checks=pa.Check(lambda _: True, name="balanced"),
    )

    with pytest.raises(FormError) as refused:
        Form.from_model(schema, table="t", name="f")

    said = "\n".join(refused.value.problems)
    for word in ("even", "UTC", "greater_than", "List", "balanced"):
        assert word in said


def test_a_schema_of_unique_columns_gives_the_key() -> None:
    """`unique` over columns of a schema is the key of the form, `strict` refuses unknown columns."""
    schema = pa.DataFrameSchema({"a": pa.Column(pl.String), "b": pa.Column(pl.Date)}, unique=["a", "b"], strict=True)

    form = Form.from_model(schema, table="t", name="f")

    assert form.key == ("a", "b")
    assert form.unknown_columns == "refuse"
