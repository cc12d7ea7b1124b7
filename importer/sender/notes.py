"""Notes at cells: the comments part and the old drawing that gives each its box (ECMA-376 part 4, 19.1: VML).

A sheet that has notes keeps them: ours are added behind, and a cell that has one gets our text below its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from importer.errors import WorkbookError
from importer.sender.package_edit import DECLARATION, MAIN, Package, attributes, before_end, inline_text
from importer.sender.sheet_edit import column_number, letters

#: Who a note is from.
AUTHOR = "Import check"
_COMMENTS_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.comments+xml"
_VML_TYPE = "application/vnd.openxmlformats-officedocument.vmlDrawing"
_COMMENT = re.compile(rb"<(?:\w+:)?comment(?=[\s>])([^>]*)>(.*?)</(?:\w+:)?comment\s*>", re.DOTALL)
_REFERENCE = re.compile(r"([A-Z]+)([0-9]+)")
#: Width of a note's box in columns.
_COLUMNS = 4

_VML_START = (
    '<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:x="urn:schemas-microsoft-com:office:excel">'
    '<o:shapelayout v:ext="edit"><o:idmap v:ext="edit" data="{map}"/></o:shapelayout>'
    '<v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202" path="m,l,21600r21600,l21600,xe">'
    '<v:stroke joinstyle="miter"/><v:path gradientshapeok="t" o:connecttype="rect"/></v:shapetype>'
)
_SHAPE = (
    '<v:shape id="_x0000_s{id}" type="#_x0000_t202" style="position:absolute;margin-left:107pt;margin-top:7pt;'
    'width:220pt;height:{height}pt;z-index:1;visibility:hidden" fillcolor="#fff3f3" o:insetmode="auto">'
    '<v:fill color2="#fff3f3"/><v:shadow on="t" color="black" obscured="t"/><v:path o:connecttype="none"/>'
    '<v:textbox style="mso-direction-alt:auto"><div style="text-align:left"></div></v:textbox>'
    '<x:ClientData ObjectType="Note"><x:MoveWithCells/><x:SizeWithCells/>'
    "<x:Anchor>{anchor}</x:Anchor><x:AutoFill>False</x:AutoFill><x:Row>{row}</x:Row><x:Column>{column}</x:Column>"
    "</x:ClientData></v:shape>"
)

#: A cell: sheet row (from 1) and sheet column (from 0).
Cell = tuple[int, int]


def add_notes(package: Package, sheet_part: str, notes: Mapping[Cell, str]) -> str | None:
    """Put notes at cells of a sheet; return the id of a drawing that the sheet must now refer to, if it is new."""
    related = package.relationships(sheet_part)
    comments = next((part for kind, part in related.values() if kind == "comments"), None)
    drawing = next((part for kind, part in related.values() if kind == "vmlDrawing" and _is_notes(package, part)), None)
    if comments is None:
        comments = package.free_name("xl/comments{}.xml")
        package.put(
            comments,
            _comments(DECLARATION + f'<comments xmlns="{MAIN}"><authors/><commentList/></comments>'.encode(), notes),
        )
        package.declare(part=comments, content_type=_COMMENTS_TYPE)
        package.relate(sheet_part, "comments", comments)
        shapes = dict(notes)
    else:
        text = package.read(comments)
        there = {_cell(attributes(found[1]).get("ref", "")) for found in _COMMENT.finditer(text)}
        package.put(comments, _comments(text, notes))
        shapes = {cell: note for cell, note in notes.items() if cell not in there}
    if drawing is not None:
        package.put(drawing, _with_shapes(package.read(drawing), shapes))
        return None
    if any(kind == "vmlDrawing" for kind, _ in related.values()) and _refers_to_drawing(package, sheet_part):
        drawing = next(part for kind, part in related.values() if kind == "vmlDrawing")
        package.put(drawing, _with_shapes(package.read(drawing), shapes))
        return None
    drawing = package.free_name("xl/drawings/vmlDrawing{}.vml")
    package.put(drawing, _with_shapes((_VML_START.format(map=_free_map(package)) + "</xml>").encode(), shapes))
    package.declare(extension="vml", content_type=_VML_TYPE)
    return package.relate(sheet_part, "vmlDrawing", drawing)


def _is_notes(package: Package, part: str) -> bool:
    return package.has(part) and b'ObjectType="Note"' in package.read(part)


def _refers_to_drawing(package: Package, sheet_part: str) -> bool:
    """Whether the sheet has a drawing of the old kind already (buttons, say): it has room for one reference only."""
    tail = b""
    for block in package.blocks(sheet_part):
        tail = (tail + block)[-(1 << 16) :]
    return re.search(rb"<(?:\w+:)?legacyDrawing\b", tail) is not None


def _free_map(package: Package) -> int:
    """A number for the shapes' ids that no other drawing uses."""
    used = {1}
    for part in package.names:
        if part.endswith(".vml"):
            used |= {
                int(n)
                for data in re.findall(rb'<o:idmap[^>]*\bdata="([0-9, ]+)"', package.read(part))
                for n in re.findall(rb"[0-9]+", data)
            }
    return max(used) + 1


def _cell(reference: str) -> Cell:
    found = _REFERENCE.fullmatch(reference)
    return (int(found[2]), column_number(found[1])) if found else (0, 0)


def _comments(text: bytes, notes: Mapping[Cell, str]) -> bytes:
    found = re.search(rb"<(\w+:)?comments\b", text)
    p = (found[1] or b"").decode() if found else ""
    for name in ("authors", "commentList"):
        text = re.sub(rf"<{p}{name}\s*/>".encode(), f"<{p}{name}></{p}{name}>".encode(), text)
    authors = re.findall(rf"<{p}author\s*/>|<{p}author\b[^>]*>".encode(), text)
    text = before_end(text, "authors", f"<{p}author>{AUTHOR}</{p}author>".encode())
    left = dict(notes)

    def with_ours(comment: re.Match[bytes]) -> bytes:
        note = left.pop(_cell(attributes(comment[1]).get("ref", "")), None)
        return comment[0] if note is None else before_end(comment[0], "text", _run(f"\n\n{note}", p))

    text = _COMMENT.sub(with_ours, text)
    made = b"".join(
        f'<{p}comment ref="{letters(column)}{row}" authorId="{len(authors)}"><{p}text>'.encode()
        + _run(note, p)
        + f"</{p}text></{p}comment>".encode()
        for (row, column), note in sorted(left.items())
    )
    return before_end(text, "commentList", made)


def _run(note: str, p: str) -> bytes:
    inside = inline_text(note).replace("<t ", f"<{p}t ").replace("</t>", f"</{p}t>")
    look = f'<{p}sz val="9"/><{p}color indexed="81"/><{p}rFont val="Tahoma"/><{p}family val="2"/>'
    return f"<{p}r><{p}rPr>{look}</{p}rPr>{inside}</{p}r>".encode()


def _with_shapes(drawing: bytes, notes: Mapping[Cell, str]) -> bytes:
    maps = re.search(rb'<o:idmap[^>]*\bdata="([0-9]+)', drawing)
    block = int(maps[1]) if maps else 1
    used = [int(n) for n in re.findall(rb'id="_x0000_s([0-9]+)"', drawing)]
    first = max([*used, block * 1024]) + 1
    shapes = "".join(_shape(first + at, cell, note) for at, (cell, note) in enumerate(sorted(notes.items())))
    if b"</xml>" not in drawing:
        raise WorkbookError("corrupt", "the drawing of the sheet's notes does not end")
    end = drawing.rindex(b"</xml>")
    return drawing[:end] + shapes.encode() + drawing[end:]


def _shape(number: int, cell: Cell, note: str) -> str:
    row, column = cell
    lines = min(20, sum(1 + len(line) // 42 for line in note.split("\n")))
    top = max(0, row - 2)
    left = column + 1 if column < 16_370 else column - _COLUMNS - 1
    anchor = f"{left}, 12, {top}, 4, {left + _COLUMNS}, 12, {top + 1 + lines}, 4"
    return _SHAPE.format(id=number, height=15 * (lines + 1), anchor=anchor, row=row - 1, column=column)
