"""A form from a YAML or JSON file; a key written twice is a problem, not the last one wins."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from importer.errors import FormError
from importer.forms.definition import read_form
from importer.forms.form import Form


def read_form_file(path: Path) -> Form:
    """The form in a file. Raises: FormError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FormError(path.name, [f"the file cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise FormError(path.name, ["the file is not encoded as UTF-8"]) from error
    try:
        if path.suffix.lower() == ".json":
            definition = json.loads(text, object_pairs_hook=_pairs)
        else:
            definition = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader that refuses doubled keys
    except json.JSONDecodeError as error:
        raise FormError(path.name, [f"the file is no JSON: {error.msg} in line {error.lineno}"]) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise FormError(
            path.name, [f"the file is no YAML: {getattr(error, 'problem', None) or error}{where}"]
        ) from error
    if not isinstance(definition, dict):
        raise FormError(path.name, ["the file holds no form: a mapping with name, table and columns is expected"])
    return read_form(definition)


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002 - overrides
        """A mapping without doubled keys."""
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1 and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key "{key.value}" is written twice', key.start_mark
                )
        return dict(super().construct_mapping(node, deep=deep))


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise FormError("", [f'the key "{key}" is written twice'])
    return dict(pairs)
