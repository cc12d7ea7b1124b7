"""Shared strings cut without a parser are those that expat reads, or are left to it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importer.errors import WorkbookError
from importer.excel import Limits
from importer.excel import shared_strings as shared_module
from importer.excel.shared_strings import _Table
from tests.workbooks import MAIN

ITEMS = [
    "<si><t>one</t></si>",
    '<si><t xml:space="preserve"> two </t></si>',
    "<si><t>a &amp; b &lt;c&gt; &quot;d&quot; &apos;</t></si>",
    "<si><t></t></si>",
    "<si><t/></si>",
    "<si><t>line\nbreak é😀</t></si>",
    "<si><t>_x0041__x0000_</t></si>",
]
ODD_ITEMS = [
    "<si><r><t>rich</t></r><r><rPr><b/></rPr><t>er</t></r></si>",
    "<si><t>漢字</t><rPh sb='0' eb='2'><t>x</t></rPh></si>",
    "<si/>",
    "<si>\n<t>x</t>\n</si>",
    "<si><t>&#65;&nbsp;</t></si>",
    "<si><t>a\rb</t></si>",
    "<si><t><![CDATA[</t></si><si><t>]]></t></si>",
    "<!-- </si> <si><t>no</t></si> -->",
    "<si><t>a]]>b</t></si>",
    "<si><t>\x01</t></si>",
    "<si><t x='1'>x</t></si>",
    "<si><t>1</si>",
    "<t>x</t>",
    "</t></si><si><t>",
]


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even a small part into several runs."""
    monkeypatch.setattr(shared_module, "_RUN_BYTES", 200)


def _part(seed: int) -> bytes:
    dice = random.Random(seed)
    items = [dice.choice(ODD_ITEMS if dice.random() < 0.02 else ITEMS) for _ in range(dice.randrange(40))]
    text = f'<?xml version="1.0"?>\n<sst xmlns="{MAIN}" count="{len(items)}">{"".join(items)}</sst>'
    if dice.random() < 0.2:
        text = text.replace("<si", "<x:si").replace("</si", "</x:si").replace("<t", "<x:t").replace("</t", "</x:t")
        text = text.replace("<sst xmlns=", "<x:sst xmlns:x=").replace("</sst", "</x:sst")
    content = bytearray(text.encode())
    if dice.random() < 0.3:
        at = dice.randrange(len(content))
        content[at : at + dice.choice([0, 1, 9])] = dice.choice(
            [b"<", b">", b"&", b"\xff", b"/", b"</t></si>", b"<si>"]
        )
    return bytes(content)


def _read(part: bytes, *, plain: bool) -> list[tuple[str, bool]] | str:
    def pieces() -> Iterator[bytes]:
        yield from (part[at : at + 90] for at in range(0, len(part), 90))

    try:
        strings = _Table("xl/sharedStrings.xml", Limits(), plain=plain, compiled=False).read(pieces())
    except WorkbookError as error:
        return error.reason
    flags = strings._unstorable
    flagged = [False] * len(strings) if flags is None else flags.to_list()
    return list(zip(strings._texts.to_list(), flagged, strict=True))


@given(seed=st.integers(0, 10**9))
@settings(max_examples=300, deadline=None)
def test_strings_are_the_same_whoever_reads_them(seed: int) -> None:
    """Plain, rich, odd and damaged items: the same texts in the same order, or the same refusal."""
    part = _part(seed)

    assert _read(part, plain=True) == _read(part, plain=False)


def test_plain_items_do_not_need_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of plain items alone is cut, but for its beginning and end."""
    fed: list[bytes] = []
    monkeypatch.setattr(shared_module._Table, "_feed", lambda _, run: fed.append(run))
    part = f'<sst xmlns="{MAIN}">{"".join(ITEMS)}</sst>'.encode()

    found = _read(part, plain=True)

    assert isinstance(found, list)
    assert [text for text, _ in found[:4]] == ["one", " two ", 'a & b <c> "d" \'', ""]
    assert fed == []
