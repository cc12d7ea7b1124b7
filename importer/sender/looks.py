"""The looks that a marked workbook needs, added to its styles: nothing that is there changes its number."""

from __future__ import annotations

import re
from collections.abc import Iterable

from importer.sender.package_edit import DECLARATION, MAIN

_FILL = (
    '<{{p}}fill><{{p}}patternFill patternType="solid"><{{p}}fgColor rgb="{0}"/><{{p}}bgColor indexed="64"/>'
    "</{{p}}patternFill></{{p}}fill>"
)
_BAD_FILL = _FILL.format("FFFFC7CE")
_HEAD_FILL = _FILL.format("FF1F4E79")
_FONTS = (
    '<{p}font><{p}b/><{p}sz val="15"/><{p}color rgb="FF1F4E79"/><{p}name val="Calibri"/></{p}font>',
    '<{p}font><{p}b/><{p}sz val="11"/><{p}color rgb="FFFFFFFF"/><{p}name val="Calibri"/></{p}font>',
    '<{p}font><{p}u/><{p}sz val="11"/><{p}color rgb="FF0563C1"/><{p}name val="Calibri"/></{p}font>',
)
#: What a section of styles stands before (ECMA-376 part 1, 18.8.39).
_ORDER = (
    "numFmts",
    "fonts",
    "fills",
    "borders",
    "cellStyleXfs",
    "cellXfs",
    "cellStyles",
    "dxfs",
    "tableStyles",
    "colors",
    "extLst",
)
_FILLED = {
    "fonts": '<{p}font><{p}sz val="11"/><{p}name val="Calibri"/></{p}font>',
    "fills": (
        '<{p}fill><{p}patternFill patternType="none"/></{p}fill>'
        '<{p}fill><{p}patternFill patternType="gray125"/></{p}fill>'
    ),
    "borders": "<{p}border><{p}left/><{p}right/><{p}top/><{p}bottom/><{p}diagonal/></{p}border>",
    "cellXfs": '<{p}xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>',
}
_CHILD = {"fonts": "font", "fills": "fill", "borders": "border", "cellXfs": "xf"}


class Looks:
    """The styles of a workbook with ours added; numbers are those of `cellXfs`."""

    def __init__(self, styles: bytes | None, used: Iterable[int]) -> None:
        text = styles or DECLARATION + f'<styleSheet xmlns="{MAIN}"></styleSheet>'.encode()
        found = re.search(rb"<(\w+:)?styleSheet\b", text)
        self._p = (found[1] or b"").decode() if found else ""
        text = re.sub(rb"<((?:\w+:)?styleSheet)\b([^>]*?)/>\s*$", rb"<\1\2></\1>", text)
        for section in _FILLED:
            text = self._with_section(text, section)
        text, bad = self._add(text, "fills", [_BAD_FILL])
        text, head = self._add(text, "fills", [_HEAD_FILL])
        text, font = self._add(text, "fonts", _FONTS)
        xfs = self._children(text, "cellXfs")
        base = xfs[0] if xfs else _FILLED["cellXfs"].format(p=self._p).encode()
        numbers = sorted(set(used) | {0})
        clones = [_filled(xfs[number] if number < len(xfs) else base, bad) for number in numbers]
        p = self._p
        top, wrapped = f'<{p}alignment vertical="top"/>', f'<{p}alignment vertical="top" wrapText="1"/>'
        own = [
            f'<{p}xf numFmtId="0" fontId="{font}" fillId="0" borderId="0" applyFont="1"/>',
            f'<{p}xf numFmtId="0" fontId="{font + 1}" fillId="{head}" borderId="0" applyFont="1" applyFill="1"/>',
            f'<{p}xf numFmtId="0" fontId="{font + 2}" fillId="0" borderId="0" applyFont="1">{top}</{p}xf>',
            f'<{p}xf numFmtId="49" fontId="0" fillId="0" borderId="0" quotePrefix="1">{wrapped}</{p}xf>',
        ]
        text, first = self._add(text, "cellXfs", [*(clone.decode() for clone in clones), *own])
        #: The look of a bad cell, by the look it had.
        self.bad = {number: first + at for at, number in enumerate(numbers)}
        self.title, self.head, self.link, self.text = (first + len(clones) + at for at in range(4))
        self.styles = text

    def _with_section(self, text: bytes, section: str) -> bytes:
        """Make sure that a section is there and not empty: its first members are what number 0 means."""
        p = self._p
        text = re.sub(rf"<{p}{section}\b[^>]*/>".encode(), b"", text)
        if re.search(rf"<{p}{section}\b".encode(), text):
            return text
        made = f'<{p}{section} count="1">{_FILLED[section].format(p=p)}</{p}{section}>'.encode()
        for later in _ORDER[_ORDER.index(section) + 1 :]:
            at = re.search(rf"<{p}{later}\b".encode(), text)
            if at:
                return text[: at.start()] + made + text[at.start() :]
        end = text.rindex(b"</")
        return text[:end] + made + text[end:]

    def _section(self, text: bytes, section: str) -> re.Match[bytes]:
        p = self._p
        found = re.search(rf"<{p}{section}\b[^>]*>(.*?)</{p}{section}\s*>".encode(), text, re.DOTALL)
        assert found is not None  # _with_section
        return found

    def _children(self, text: bytes, section: str) -> list[bytes]:
        p, child = self._p, _CHILD[section]
        pattern = rf"<{p}{child}\b[^>]*?/>|<{p}{child}\b[^>]*?[^/]>.*?</{p}{child}\s*>|<{p}{child}>.*?</{p}{child}\s*>"
        return re.findall(pattern.encode(), self._section(text, section)[1], re.DOTALL)

    def _add(self, text: bytes, section: str, items: Iterable[str]) -> tuple[bytes, int]:
        """Add members to a section; return the number of the first."""
        first = len(self._children(text, section))
        added = [item.format(p=self._p) if "{p}" in item else item for item in items]
        found = self._section(text, section)
        start = re.sub(rb'\scount\s*=\s*["\'][0-9]*["\']', b"", text[found.start() : found.start(1)])
        start = start[:-1] + f' count="{first + len(added)}">'.encode()
        whole = start + found[1] + "".join(added).encode() + text[found.end(1) : found.end()]
        return text[: found.start()] + whole + text[found.end() :], first


def _filled(xf: bytes, fill: int) -> bytes:
    """The same look with another fill."""
    end = xf.index(b">")
    tag, rest = xf[:end], xf[end:]
    if tag.endswith(b"/"):
        tag, rest = tag[:-1], b"/" + rest
    tag = re.sub(rb'\s(?:fillId|applyFill)\s*=\s*["\'][^"\']*["\']', b"", tag)
    return tag + f' fillId="{fill}" applyFill="1"'.encode() + rest
