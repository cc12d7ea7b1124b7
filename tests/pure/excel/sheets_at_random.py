"""Sheet parts at random, for the tests that hold the scanners equal: mostly plain, sometimes odd, sometimes broken."""

from __future__ import annotations

import random

from tests.workbooks import MAIN

LETTERS = ["A", "B", "C", "D", "Z", "AA", "XFD"]
NUMBERS = ["1", "0", "-1.5", "1E+2", "12345678901234567890", "007", " 7 ", "abc", "", "NaN", "+3", ".5", "1.", "\n2\n"]
INDEXES = ["0", "1", "2", "3", "4", "99", "-1", "007", "0099", "+1", " 1 ", "1.0", ""]
TEXTS = [
    "x",
    "",
    "  ",
    "a &amp; b",
    "&lt;tag&gt;",
    "a>b",
    "é😀",
    "_x0041_",
    "_x0000_",
    "a\nb",
    "=cmd",
    "&quot;&apos;",
    "#N/A",
]
ODD_TEXTS = [
    "&#65;",
    "a\rb",
    "<![CDATA[<x>]]>",
    "<!-- no -->x",
    "]]>",
    "&nope;",
    "a\x01b",
    "\ufffe",
    "<?pi x?>y",
    "&",
    "i>x",
    "v>x",
]
ROW_ENDS = [
    "",
    ' spans="1:9"',
    ' ht="15" customHeight="1"',
    ' hidden="1"',
    ' hidden="true" s="1"',
    ' x14ac:dyDescent="0.25"',
]
ODD_ROW_ENDS = [' r="9"', " a='1' a='2'", ' xmlns="urn:other"', ' b="<"', " a", ' no:ns="1"', ' a="&amp;>"']
CELL_ENDS = ["", ' s="1"', ' s="2"', ' s="99"', ' s="1" cm="1"', ' t="n"']
HEAD = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<worksheet xmlns="{MAIN}" '
    'xmlns:x14ac="http://schemas.microsoft.com/office/spreadsheetml/2009/9/ac"><sheetData>'
)
TAIL = '</sheetData><mergeCells><mergeCell ref="A1:B2"/></mergeCells></worksheet>'


class SheetMaker:
    """Makes one sheet part after another from a seed; `odd` is how often something is not plain."""

    def __init__(self, seed: int, *, odd: float) -> None:
        self._random = random.Random(seed)
        self._odd = odd

    def part(self) -> str:
        """Make a sheet part."""
        rows: list[str] = []
        number = 0
        width = self._random.randint(0, 6)
        pattern = [(self._random.choice("nsbeif"), self._random.choice(CELL_ENDS)) for _ in range(width)]
        columns = sorted(self._random.sample(range(30), width))
        for _ in range(self._random.randint(0, 30)):
            number += self._random.choice([1, 1, 1, 2]) if not self._chance(0.1) else 0
            rows.append(self._row(number, columns, pattern))
        text = "".join(rows)
        if self._chance(0.1):
            text = text.replace("</row><row", "</row>\n <row")
        if self._chance(0.2):
            return self._prefixed(HEAD + text + TAIL)
        return HEAD + text + TAIL

    def mutated(self) -> bytes:
        """Make a sheet part and change a few of its bytes."""
        content = bytearray(self.part().encode())
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randrange(len(content))
            match self._random.randrange(4):
                case 0:
                    del content[at : at + self._random.choice([1, 1, 5, 14, 40])]
                case 1:
                    content[at:at] = self._random.choice(
                        [
                            b"<",
                            b">",
                            b"/",
                            b'"',
                            b"&",
                            b" ",
                            b"\x01",
                            b"\x07",
                            b"\x02",
                            b"0",
                            b"</v></c>",
                            b'<c r="',
                            b"</row>",
                        ]
                    )
                case 2:
                    content[at] = self._random.choice(b'<>/"&= 01ABcrvis\x01\x04\x0e\xff')
                case _:
                    end = at + self._random.choice([4, 14, 40])
                    content[at:at] = content[at:end]
        return bytes(content)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share * self._odd * 10

    def _row(self, number: int, columns: list[int], pattern: list[tuple[str, str]]) -> str:
        end = self._random.choice(
            ODD_ROW_ENDS if self._chance(0.01) else ROW_ENDS[:2] if self._random.random() < 0.8 else ROW_ENDS
        )
        name = "" if self._chance(0.01) else f' r="{number}"'
        if self._random.random() < 0.03:
            return f"<row{name}{end}/>"
        cells = []
        for column, (kind, cell_end) in zip(columns, pattern, strict=True):
            if self._random.random() < 0.03:
                continue
            mine = self._random.choice("nsbeif") if self._random.random() < 0.05 else kind
            cells.append(self._cell(_letters(column), number, mine, cell_end))
        if self._chance(0.02):
            self._random.shuffle(cells)
        if self._chance(0.02) and cells:
            cells.append(self._random.choice(cells))
        return f"<row{name}{end}>{''.join(cells)}</row>"

    def _cell(self, letters: str, number: int, kind: str, end: str) -> str:
        choice = self._random.choice
        if self._chance(0.02):
            number += 1
        name = (
            choice(["", f' r="{letters.lower()}{number}"', f' r = "{letters}{number}"'])
            if self._chance(0.02)
            else f' r="{letters}{number}"'
        )
        text = choice(ODD_TEXTS if self._chance(0.02) else TEXTS)
        if self._random.random() < 0.05:
            return choice(
                [f"<c{name}{end}/>", f"<c{name}{end}></c>", f"<c{name}{end}><v/></c>"]
                if self._chance(0.2)
                else [f"<c{name}{end}/>"]
            )
        if " t=" in end and kind != "n":
            end = ""
        match kind:
            case "n":
                return f"<c{name}{end}><v>{self._mostly(NUMBERS)}</v></c>"
            case "s":
                return f'<c{name}{end} t="s"><v>{self._mostly(INDEXES)}</v></c>'
            case "b":
                return f'<c{name}{end} t="b"><v>{self._mostly(["1", "0", "true", "2"])}</v></c>'
            case "e":
                return f'<c{name}{end} t="{choice(["e", "str", "d", "zz"])}"><v>{text}</v></c>'
            case "f":
                formula = choice(
                    ["<f>A1+1</f>", '<f t="shared" si="0"/>', '<f t="shared" ref="A1:A9" si="0">"a"&amp;"b"</f>']
                )
                if self._chance(0.02):
                    formula = choice(
                        ["<f/>", "<f>&nope;</f>", '<f a="&gt;>">1</f>', "<f>a<v>1</v></f>", "<f a a>1</f>"]
                    )
                kind_of = choice(["", ' t="str"'])
                return f"<c{name}{end}{kind_of}>{formula}<v>{self._mostly(NUMBERS)}</v></c>"
            case _:
                inner = choice([f"<t>{text}</t>", f'<t xml:space="preserve">{text}</t>'])
                if self._chance(0.03):
                    inner = choice([f"<r><t>{text}</t></r><r><t>y</t></r>", f"{inner}<rPh><t>z</t></rPh>", "<t/>", ""])
                kind_of = choice(["", ' t="n"']) if self._chance(0.01) else ' t="inlineStr"'
                return f"<c{name}{end}{kind_of}><is>{inner}</is></c>"

    def _mostly(self, values: list[str]) -> str:
        return self._random.choice(values[:3] if self._random.random() < 0.9 else values)

    @staticmethod
    def _prefixed(text: str) -> str:
        text = text.replace("<?", "\x00").replace("<!", "\x02").replace("</", "\x03").replace("<", "<x:")
        text = text.replace("\x03", "</x:").replace("\x02", "<!").replace("\x00", "<?")
        return text.replace(f'xmlns="{MAIN}"', f'xmlns:x="{MAIN}"')


def _letters(column: int) -> str:
    return chr(65 + column) if column < 26 else "A" + chr(65 + column - 26)
