"""The problems of a form, gathered while its keys are read, so that a person sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from importer.forms.labels import nearest

#: Longest identifier PostgreSQL keeps, in bytes (NAMEDATALEN - 1).
MAX_IDENTIFIER_BYTES = 63


class Problems:
    """The problems of one form, gathered while it is read."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note one problem."""
        self.found.append(problem)

    def text(self, holder: Mapping[str, object], key: str, where: str, *, needed: bool = False) -> str | None:
        """The text under `key`; a problem when it is no text, blank, or missing though needed."""
        value = holder.get(key)
        if value is None:
            if needed:
                self.add(f"{where}{key} is missing")
            return None
        if not isinstance(value, str) or not value.strip():
            self.add(f"{where}{key} must be text, not {value!r}")
            return None
        return value

    def texts(self, holder: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
        """The list of texts under `key` (one text alone counts as a list of one)."""
        value = holder.get(key)
        if value is None:
            return ()
        several: Sequence[object] = (
            [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else [None]
        )
        if any(not isinstance(v, str) or not v.strip() for v in several):
            self.add(f"{where}{key} must be a list of texts, not {value!r}{quote_hint(several)}")
            return ()
        return tuple(str(v) for v in several)

    def word(self, holder: Mapping[str, object], key: str, words: Sequence[str], where: str = "") -> str:
        """One of the closed set `words` under `key`; the first is the default."""
        value = holder.get(key, words[0])
        if isinstance(value, str) and value in words:
            return value
        hint = nearest(value, words) if isinstance(value, str) else ""
        self.add(f"{where}{key} must be one of {', '.join(words)}, not {value!r}{hint}")
        return words[0]

    def whole(self, holder: Mapping[str, object], key: str, where: str, *, least: int, most: int) -> int | None:
        """The whole number under `key` within bounds."""
        value = holder.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.add(f"{where}{key} must be a whole number from {least} to {most}, not {value!r}")
            return None
        return value

    def flag(self, holder: Mapping[str, object], key: str, where: str) -> bool:
        """True or false under `key`."""
        value = holder.get(key, False)
        if not isinstance(value, bool):
            self.add(f"{where}{key} must be true or false, not {value!r}")
            return False
        return value

    def unknown_keys(self, holder: Mapping[str, object], known: Iterable[str], where: str) -> None:
        """A problem for each key that is none of `known`."""
        known = tuple(known)
        for key in holder:
            if key not in known:
                self.add(f'{where}unknown key "{key}"{nearest(str(key), known)}')

    def identifier(self, name: str | None, where: str) -> None:
        """A name that PostgreSQL can hold uncut."""
        if name is None:
            return
        if len(name.encode("utf-8", "surrogatepass")) > MAX_IDENTIFIER_BYTES:
            self.add(f'{where}"{name}" is longer than the {MAX_IDENTIFIER_BYTES} bytes that PostgreSQL keeps of a name')
        if name != name.strip() or not name.isprintable():
            self.add(f"{where}{name!r} holds spaces at its ends or characters that cannot be printed")
        if "%" in name:
            self.add(f"{where}{name!r} holds a per cent sign, which the statements of an import cannot carry")


def quote_hint(values: Sequence[object]) -> str:
    """YAML reads bare yes, no, on, off as true and false: say so where one turns up among texts."""
    return (
        " (in YAML, put yes, no, on, off and numbers in quotes)"
        if any(isinstance(v, bool | int | float) for v in values)
        else ""
    )
