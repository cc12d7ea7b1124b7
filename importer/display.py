r"""How results look to a person: tables for a notebook and for a terminal, numbers and durations.

The lowest room: it takes plain values and returns text. Whatever comes out of `table` is safe to put into a page, for
every cell is escaped (a cell that holds `<script>` shows as these letters), and whatever comes out of `text_table` is
safe to print, for control characters, which could move a terminal's caret or colours, show as `\x1b` and the like.

A library for tables was rejected: thirty lines do, and they decide what a cell of a stranger's workbook may do.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal

#: What a table shows for `None`: nothing was there, which is not the same as an empty text.
BLANK = "–"  # noqa: RUF001 - the dash is what is meant

_CELL_STYLE = "padding:2px 8px;border-bottom:1px solid #8884"


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str | None = None) -> str:
    """Return an HTML table, every text in it escaped and every number to the right.

    Example:
        >>> "&lt;b&gt;" in table(["value"], [["<b>"]])
        True
    """
    lines = ['<table style="border-collapse:collapse;text-align:left">']
    if caption is not None:
        lines.append(f'<caption style="text-align:left;padding:2px 8px">{html.escape(caption)}</caption>')
    titles = "".join(f'<th scope="col" style="{_CELL_STYLE}">{html.escape(title)}</th>' for title in headers)
    lines.append(f"<thead><tr>{titles}</tr></thead>")
    lines.append("<tbody>")
    lines.extend(f"<tr>{''.join(_html_cell(value) for value in row)}</tr>" for row in rows)
    lines.append("</tbody></table>")
    return "".join(lines)


def text_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str | None = None,
    widest: int = 48,
) -> str:
    """Return a table for a terminal, lines joined by a line feed: numbers to the right, long cells cut at `widest`.

    Widths are those of the terminal's grid: East Asian wide letters count two, combining marks none.

    Example:
        >>> print(text_table(["row", "rule"], [[17, "bad_date"], [1204, "type"]]))
          row  rule
        ─────  ────────
           17  bad_date
        1,204  type
    """
    values = [list(row) for row in rows]
    cells = [[_cut(printable(text(value)), widest) for value in row] for row in values]
    titles = [_cut(printable(title), widest) for title in headers]
    columns = range(len(titles))
    widths = [max(_width(line[column]) for line in [titles, *cells]) for column in columns]
    to_right = [_is_numeric([row[column] for row in values]) for column in columns]

    def line(parts: Sequence[str]) -> str:
        return "  ".join(_pad(parts[column], widths[column], to_right=to_right[column]) for column in columns).rstrip()

    lines = [] if caption is None else [printable(caption)]
    lines += [line(titles), "  ".join("─" * width for width in widths)]
    lines += [line(row) for row in cells]
    return "\n".join(lines)


def text(value: object) -> str:
    """Return a value in words: thousands marked, moments without fractions nobody asked for, `None` as a dash.

    Example:
        >>> text(30000), text(None) == BLANK, text(True)
        ('30,000', True, 'yes')
    """
    match value:
        case None:
            return BLANK
        case bool():
            return "yes" if value else "no"
        case int():
            return number(value)
        case float() | Decimal():
            return f"{value:,}"
        case timedelta():
            return duration(value)
        case datetime():
            return moment(value)
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def number(value: int) -> str:
    """Return a whole number with its thousands marked.

    Example:
        >>> number(1234567)
        '1,234,567'
    """
    return f"{value:,}"


def count(value: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun in the right form.

    Example:
        >>> count(1, "row"), count(30000, "row"), count(2, "entry", "entries")
        ('1 row', '30,000 rows', '2 entries')
    """
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def rate(rows: int, elapsed: timedelta) -> str:
    """Return rows per second, or a dash where no time has passed.

    Example:
        >>> rate(30_000, timedelta(seconds=2))
        '15,000 rows/s'
    """
    seconds = elapsed.total_seconds()
    return f"{number(round(rows / seconds))} rows/s" if seconds > 0 else BLANK


def duration(value: timedelta) -> str:
    """Return a length of time with the two units that matter.

    Example:
        >>> [duration(timedelta(seconds=s)) for s in (0.0042, 1.25, 75, 7_500, 200_000)]
        ['4 ms', '1.3 s', '1 min 15 s', '2 h 5 min', '2 d 7 h']
    """
    seconds = value.total_seconds()
    if seconds < 0:
        return "-" + duration(-value)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{Decimal(str(seconds)).quantize(Decimal('0.1'), rounding='ROUND_HALF_UP')} s"
    whole = round(seconds)
    days, hours, minutes, rest = whole // 86400, whole % 86400 // 3600, whole % 3600 // 60, whole % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if minutes:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{whole} s"


def size(size_bytes: int) -> str:
    """Return a number of bytes in the unit that leaves few digits.

    Example:
        >>> size(900), size(1_234_567)
        ('900 B', '1.2 MB')
    """
    if size_bytes < 1000:
        return f"{size_bytes} B"
    amount = float(size_bytes)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:,.1f} TB"


def moment(value: datetime) -> str:
    """Return a moment to the second, with its zone where it has one (`UTC` is said in words).

    Example:
        >>> from datetime import UTC
        >>> moment(datetime(2026, 3, 1, 7, 30, tzinfo=UTC))
        '2026-03-01 07:30:00 UTC'
    """
    shown = value.strftime("%Y-%m-%d %H:%M:%S")
    if value.tzinfo is None:
        return shown
    return f"{shown} UTC" if not value.utcoffset() else f"{shown}{value.strftime('%z')}"


def printable(value: str) -> str:
    r"""Return a text on one line that a terminal can only show: controls and direction marks as escapes.

    Example:
        >>> printable("a\nb\x1b[31m")
        'a\\nb\\x1b[31m'
    """
    if value.isprintable():
        return value
    return "".join(letter if letter.isprintable() or letter == "\u3000" else _escaped(letter) for letter in value)


def _escaped(letter: str) -> str:
    if unicodedata.category(letter) == "Zs":
        return " "
    return letter.encode("unicode_escape").decode("ascii")


def _html_cell(value: object) -> str:
    style = f"{_CELL_STYLE};text-align:right" if _is_number(value) else _CELL_STYLE
    return f'<td style="{style}">{html.escape(text(value))}</td>'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | timedelta) and not isinstance(value, bool)


def _is_numeric(values: Sequence[object]) -> bool:
    filled = [value for value in values if value is not None]
    return bool(filled) and all(_is_number(value) for value in filled)


def _width(shown: str) -> int:
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in shown
    )


def _cut(shown: str, widest: int) -> str:
    if _width(shown) <= widest:
        return shown
    width, kept = 0, []
    for letter in shown:
        width += _width(letter)
        if width > widest - 1:
            break
        kept.append(letter)
    return "".join(kept) + "…"


def _pad(shown: str, width: int, *, to_right: bool) -> str:
    gap = " " * (width - _width(shown))
    return gap + shown if to_right else shown + gap
