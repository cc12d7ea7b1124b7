"""What a workbook may cost: each limit is checked before the thing it bounds is built."""

from __future__ import annotations

from dataclasses import dataclass

from importer.errors import WorkbookError

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on one workbook; the defaults let real files of a million rows by fifty columns pass.

    A file beyond one of them is refused with the reason `too_large` and a message that names the limit.
    """

    #: inflated bytes of one part (a sheet of a million rows by fifty text columns has about 3 GiB)
    part_bytes: int = 8192 * MIB
    #: inflated bytes of all parts together, as the directory of the archive declares them
    total_bytes: int = 16384 * MIB
    #: inflated bytes for one stored byte; real sheets stay under 60, an archive bomb reaches 1,032
    ratio: int = 250
    #: inflated bytes of a part up to which its ratio is not looked at (small parts of one repeated text are harmless)
    ratio_from_bytes: int = 16 * MIB
    #: inflated bytes of a part that describes (content types, relationships, workbook, styles)
    description_bytes: int = 128 * MIB
    #: entries of the archive
    entries: int = 50_000
    #: characters of the name of an entry or of a sheet
    name_characters: int = 1_024
    #: sheets of the workbook
    sheets: int = 10_000
    #: the last row that may be used (Excel's own grid)
    rows: int = 1_048_576
    #: columns that may be used (Excel's own grid)
    columns: int = 16_384
    #: cell elements of one sheet, blank ones included
    cells: int = 250_000_000
    #: items of the shared strings
    shared_strings: int = 60_000_000
    #: characters of the text of one cell (Excel itself holds 32,767)
    cell_characters: int = 4_000_000
    #: elements inside one another
    nesting: int = 100
    #: bytes of one tag, comment or processing instruction
    tag_bytes: int = 1 * MIB
    #: cell formats of the workbook (Excel holds 65,490)
    cell_formats: int = 1_000_000
    #: memory that the library for an old format (xls, xlsb) may ask for, in a process of its own
    child_bytes: int = 2048 * MIB


def too_large(what: str, limit: int) -> WorkbookError:
    """Say which limit a workbook exceeds; `what` reads "the sheet has more {what} than ..."."""
    return WorkbookError("too_large", f"{what}; at most {limit:,} are read (a limit against files made to do harm)")
