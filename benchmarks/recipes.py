"""What the workbooks of the benchmarks hold, as plain values; `writer` makes the files.

A recipe is a size, a tuple of columns and how text is written. The same columns give the form that ours imports
with and the table that the peers load into, so nobody is measured on another job.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, LiteralString

Content = Literal["words", "note", "integer", "float", "long_float", "date", "boolean"]

#: Type in the form, type in PostgreSQL.
TYPES: Final[Mapping[Content, tuple[str, LiteralString]]] = {
    "words": ("text", "text"),
    "note": ("text", "text"),
    "integer": ("integer", "bigint"),
    "float": ("float", "double precision"),
    "long_float": ("float", "double precision"),
    "date": ("date", "date"),
    "boolean": ("boolean", "boolean"),
}


@dataclass(frozen=True, kw_only=True)
class ColumnRecipe:
    """One column: what its cells hold and the rules its form has for it."""

    #: Column of the table, and with blanks for underscores the title in the header.
    name: str
    #: What the cells hold.
    content: Content
    #: The texts to draw from (words only).
    words: tuple[str, ...] = ()
    #: Numbers lie from 0 up to this one, without it.
    below: int = 1_000
    #: Every so manieth cell is blank; 0: none is.
    blank_every: int = 0
    #: Rules for the form.
    rules: Mapping[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return the title in the header row."""
        return self.name.replace("_", " ").capitalize()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One workbook: a header row and `rows` rows on its only sheet."""

    #: Name on the command line and in the table of results.
    name: str
    #: Rows under the header.
    rows: int
    #: From left to right.
    columns: tuple[ColumnRecipe, ...]
    #: Text stands in the cells instead of in the shared strings.
    inline: bool = False
    #: 2 % of all cells break their rule.
    bad_cells: bool = False

    @property
    def table(self) -> str:
        """Return the name of the table to load into."""
        return "bench_" + self.name.split("-")[0]

    def scaled(self, divisor: int) -> "Recipe":
        """Return the same workbook with fewer rows."""
        return self if divisor == 1 else replace(self, rows=max(self.rows // divisor, 500))

    def form(self) -> dict[str, object]:
        """Return the form that ours imports this workbook with."""
        columns = [{"name": c.name, "title": c.title, "type": TYPES[c.content][0], **c.rules} for c in self.columns]
        return {"name": self.table, "table": self.table, "columns": columns}


def _mixed_columns() -> tuple[ColumnRecipe, ...]:
    sites = tuple(f"{a}{b}{c}{n:04d}" for a in "BHM" for b in "AEO" for c in "DKT" for n in range(100, 240))
    firms = tuple(
        f"{name} & {rest}"
        for name in ("Öztürk", "Meyer", "Kowalski", "Dubois", "Almeida", "Larsen", "Novák", "O'Brien")
        for rest in tuple(f"Partner {n}" for n in range(1, 60))
    )
    weathers = ("dry", "rain", "snow", "frost")
    required = {"required": True}
    code = {"required": True, "pattern": r"^[A-Z]{3}\d{4}$"}
    return (
        ColumnRecipe(name="site_code", content="words", words=sites, rules=code),
        ColumnRecipe(name="day", content="date", below=1_200, rules=required),
        ColumnRecipe(name="firm", content="words", words=firms, rules={**required, "max_length": 60}),
        ColumnRecipe(name="weather", content="words", words=weathers, rules={"choices": list(weathers)}),
        ColumnRecipe(name="note", content="note", rules={**required, "max_length": 200}),
        ColumnRecipe(name="crew", content="integer", below=480, rules={"min": 0, "max": 500}),
        ColumnRecipe(name="order_number", content="integer", below=2_000_000_000, rules=required),
        ColumnRecipe(name="level", content="integer", below=40, blank_every=20),
        ColumnRecipe(name="hours", content="float", below=2_400, rules={"min": 0}),
        ColumnRecipe(name="cost", content="long_float", below=90_000, blank_every=16),
        ColumnRecipe(name="due", content="date", below=2_400),
        ColumnRecipe(name="checked", content="boolean", rules=required),
    )


def _wide_columns() -> tuple[ColumnRecipe, ...]:
    words = tuple(f"{a} {b}" for a in ("north", "south", "east", "west") for b in range(50))
    numbers: tuple[Content, ...] = ("integer", "float", "integer", "date", "long_float", "integer", "boolean")
    cycle: tuple[Content, ...] = ("words", *numbers[:2], "words", *numbers[2:5], "words", *numbers[5:])
    return tuple(
        ColumnRecipe(
            name=f"{cycle[n % 10]}_{n + 1:03d}",
            content=cycle[n % 10],
            words=words,
            below=5_000,
            blank_every=12 if n % 10 == 4 else 0,
            rules={"min": 0} if cycle[n % 10] in ("integer", "float") else {},
        )
        for n in range(150)
    )


def _recipes() -> dict[str, Recipe]:
    mixed = _mixed_columns()
    recipes = (
        Recipe(name="mixed-50k", rows=50_000, columns=mixed),
        Recipe(name="mixed-100k", rows=100_000, columns=mixed),
        Recipe(name="mixed-200k", rows=200_000, columns=mixed),
        Recipe(name="mixed-1m", rows=1_000_000, columns=mixed),
        Recipe(name="wide-20k", rows=20_000, columns=_wide_columns()),
        Recipe(name="clean-300k", rows=300_000, columns=mixed),
        Recipe(name="bad-300k", rows=300_000, columns=mixed, bad_cells=True),
        Recipe(name="inline-100k", rows=100_000, columns=mixed, inline=True),
        Recipe(name="inline-1m", rows=1_000_000, columns=mixed, inline=True),
    )
    return {recipe.name: recipe for recipe in recipes}


#: All workbooks by name.
RECIPES: Final[Mapping[str, Recipe]] = _recipes()
