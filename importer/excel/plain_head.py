"""Whether a part may be cut without a parser: its encoding, and the prefix of its elements."""

from __future__ import annotations

import re

_ENCODING = re.compile(rb"^(?:\xef\xbb\xbf)?<\?xml[^>]*\sencoding\s*=\s*[\"']([^\"']*)[\"']")
_BYTES_AS_THEY_ARE = {b"utf-8", b"us-ascii"}


def plain_prefix(head: bytes, opening: re.Match[bytes]) -> bytes | None:
    """Give the prefix (`x:` or nothing) of the element whose opening was found, its prefix in the first group.

    None where the part is written in an encoding in which bytes are not simply UTF-8.
    """
    encoding = _ENCODING.match(head)
    if encoding is not None and encoding.group(1).lower() not in _BYTES_AS_THEY_ARE:
        return None
    prefix: bytes | None = opening.group(1)
    return prefix + b":" if prefix else b""
