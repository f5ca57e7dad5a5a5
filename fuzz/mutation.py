"""Mutations of files, by bytes and by structure.

Every mutation takes its choices from a ``random.Random``, so the same code serves a run with fixed seeds, the tests
(where hypothesis makes the choices and can shrink them) and atheris.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Sequence
from random import Random
from typing import Any

_NUMBERS = (
    b"0", b"-1", b"1", b"2", b"3", b"4", b"7", b"255", b"256", b"65536", b"2147483647", b"2147483648", b"-2147483648",
    b"4294967295", b"4294967296", b"9223372036854775807", b"-9223372036854775808", b"18446744073709551615",
    b"4611686018427387904", b"9" * 30, b"9" * 400, b"9" * 5000, b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e400",
    b"1e-320", b"0x10", b"1_0", b"+5", b"1,5", b"1.5", b"1e3", b"-0", b"--1", b"",
    "\u0661\u0662".encode(), "\u00b2".encode(), "\uff13".encode(),
)  # fmt: skip
_WORDS = (
    b"ascii", b"binary_big_endian", b"binary_little_endian", b"list", b"uchar", b"char", b"int", b"uint", b"double",
    b"float", b"int64", b"uint64", b"x", b"vertex", b"face", b"element", b"property", b"unsigned_char", b"string",
    b"BINARY", b"ASCII", b"OFFSETS", b"vtktypeint64", b"FIELD", b"POINT_DATA", b"CELL_DATA", b"solid", b"endsolid",
    b"null", b"true", b"[]", b"{}", b"\"", b"'", b";", b",", b"\t", b"#", b"//", b"1//1", b"-1/-1/-1", b"id", b"name",
    b"sternal_notch", b"SN", b"N-L", b"appended", b"Int8", b"Float64", b"UInt64", b"String", b"\0", b"A" * 3000,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63, -(2**63), 2**64,
    10**30, 10**400, 0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"), -float("inf"), "", "x", "0", "nan", "LPS",
    "\ud800", "\0", "../../x.png", "/dev/zero", "A" * 5000, [], {}, [[]], [[], [1]], [1, 2, 3], [None], [1, "2", [3]],
    {"a": 1}, [0] * 2000,
)  # fmt: skip


def of_bytes(data: bytes, rng: Random, seeds: Sequence[bytes] = ()) -> bytes:
    """Flip, overwrite, insert, delete, repeat, cut, or splice with another seed."""
    if not data:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(64)))
    # Half of the places lie at the beginning: headers, counts and types.
    at = rng.randrange(min(len(data), 400) if rng.randrange(2) else len(data))
    match rng.randrange(9):
        case 0:
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        case 1:
            return data[:at] + bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x39))]) + data[at + 1 :]
        case 2:
            word = rng.choice(
                (b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\xff" * 8, b"\0\0\xc0\x7f")
            )
            return data[:at] + word + data[at + len(word) :]
        case 3:
            return data[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9))) + data[at:]
        case 4:
            return data[:at] + data[at + rng.choice((1, 2, 4, 16, 64)) :]
        case 5:
            size = rng.choice((1, 4, 16, 256))
            return data[: at + size] + data[at : at + size] * rng.choice((1, 2, 50)) + data[at + size :]
        case 6:
            return data[:at]
        case 7:
            return data[:at] + rng.choice(_NUMBERS + _WORDS) + data[at:]
        case _:
            other = seeds[rng.randrange(len(seeds))] if seeds else data
            return data[:at] + other[rng.randrange(max(len(other), 1)) :]


def of_text(data: bytes, rng: Random) -> bytes:
    """Words, lines and the encoding of a text."""
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            return _word(data, rng)
        case 4 | 5 | 6:
            return _lines(data, rng)
        case 7:
            return rng.choice(
                (
                    data.replace(b"\n", b"\r\n"),
                    data.replace(b"\n", b"\r"),
                    data.replace(b"\n", b"\n\n"),
                    data.replace(b"\n", b"\x0b"),
                    data.replace(b"\n", b"\\\n"),
                    data.replace(b"\n", b""),
                )
            )
        case 8:
            return _encoded(data, rng)
        case _:
            return rng.choice(
                (data.upper(), data.replace(b" ", b"\t"), data.replace(b",", b";"), data + b"\0", data * 2)
            )


def _encoded(data: bytes, rng: Random) -> bytes:
    text = data.decode("latin-1")
    return rng.choice(
        (
            b"\xef\xbb\xbf" + data,
            text.encode("utf-16"),
            text.encode("utf-16-be"),
            text.encode("utf-32"),
            text.translate({ord("0") + k: 0x660 + k for k in range(10)}).encode(),  # Arabic digits
            text.replace("-", "\u2212").encode(),  # a true minus sign
        )
    )


def _word(data: bytes, rng: Random) -> bytes:
    words = list(re.finditer(rb"[^\s,;=\"<>/]+", data[:20_000]))
    if not words:
        return data
    word = words[min(rng.randrange(len(words)), rng.randrange(len(words)))]  # more often near the beginning
    new = rng.choice(
        _NUMBERS if re.fullmatch(rb"[-+.\deE]+", word.group()) or rng.randrange(3) == 0 else _WORDS
    )
    return data[: word.start()] + new + data[word.end() :]


def _lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[a]
        case 1:
            lines[b:b] = lines[a : a + 1] * rng.choice((1, 2, 100))
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case 3:
            lines = lines[:a]
        case _:
            low, high = min(a, b), max(a, b)
            lines[low:high] = [] if rng.randrange(2) else lines[low:high] * 2
    return b"\n".join(lines)


def of_headed(data: bytes, rng: Random) -> bytes:
    """A text header before binary data (PLY, legacy VTK): the header as text, the rest as numbers."""
    end = data.find(b"end_header")
    end = data.find(b"\n", end) + 1 if end >= 0 else min(len(data), 300)
    if rng.randrange(4):
        return of_text(data[:end], rng) + data[end:]
    return data[:end] + of_bytes(data[end:], rng)


def of_records(data: bytes, rng: Random) -> bytes:
    """A binary file with a count (STL): the count, and whole numbers of 32 bits anywhere."""
    at = 80 if rng.randrange(2) else 4 * rng.randrange(max(len(data) // 4, 1))
    number = rng.choice(
        (0, 1, 2, 2**31 - 1, 2**31, 2**32 - 1, 0x7F800000, 0x7FA00000, 0x7F7FFFFF, rng.getrandbits(32))
    )
    return data[:at] + struct.pack(rng.choice("<>") + "I", number) + data[at + 4 :]


def of_json(data: bytes, rng: Random) -> bytes:
    """One value of a JSON text replaced, removed, repeated, renamed or nested; or the text itself."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return of_text(data, rng)
    choice = rng.randrange(12)
    if choice == 0:
        return _nested(data, rng)
    if choice == 1:
        return of_text(data, rng)
    tree = _changed_tree(tree, rng)
    try:
        return json.dumps(tree, ensure_ascii=rng.randrange(2) == 0).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return data


def _nested(data: bytes, rng: Random) -> bytes:
    depth = rng.choice((5, 70, 900, 100_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    if rng.randrange(2):
        return opening * depth + b"1" + closing * depth
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not numbers:
        return data
    number = rng.choice(numbers)
    return data[: number.start()] + opening * depth + b"1" + closing * depth + data[number.end() :]


def _changed_tree(tree: Any, rng: Random) -> Any:
    """Change one value somewhere in a tree of lists and dictionaries."""
    if not isinstance(tree, dict | list) or not tree or rng.randrange(40) == 0:
        return rng.choice(_VALUES)
    holders = [tree]
    for holder in holders:  # grows while it is walked
        if len(holders) < 3000:
            inner = holder.values() if isinstance(holder, dict) else holder
            holders += [value for value in inner if isinstance(value, dict | list) and value]
    holder = rng.choice(holders)
    key: Any = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    other = rng.choice(holders)
    match rng.randrange(9):
        case 0 | 1 | 2 | 3:
            holder[key] = rng.choice(_VALUES)
        case 4:
            del holder[key]
        case 5:
            holder[key] = [holder[key]]
        case 6:
            holder[key] = json.loads(json.dumps(other)) if len(json.dumps(other)) < 5000 else 0
        case 7:
            if isinstance(holder, dict):
                holder[rng.choice(("", "a/b", "é", "id", "count", "nodes"))] = holder.pop(key)
            else:
                holder[key:key] = [holder[key]] * rng.choice((1, 3, 100))
        case _:
            if isinstance(holder[key], int) and abs(holder[key]) < 2**70:
                holder[key] = holder[key] * rng.choice((-1, 2, 1000)) + rng.choice((0, 1, -1))
            else:
                holder[key] = str(holder[key])[:200]
    return tree


def of_glb(data: bytes, rng: Random) -> bytes:
    """The description of a .glb file as JSON, with lengths that fit again (mostly)."""
    try:
        size = struct.unpack_from("<I", data, 12)[0]
        text, rest = data[20 : 20 + size], data[20 + size :]
    except struct.error:
        return of_bytes(data, rng)
    if rng.randrange(8) == 0:
        rest = of_bytes(rest, rng)
    else:
        text = of_json(text, rng)
    text += b" " * (-len(text) % 4)
    total = 20 + len(text) + len(rest)
    if rng.randrange(12) == 0:
        total = rng.choice((0, 19, 20, total - 1, total + 1, 2**32 - 1))
    version = 2 if rng.randrange(30) else rng.choice((0, 1, 3))
    return struct.pack("<4sIIII", b"glTF", version, total, len(text), 0x4E4F534A) + text + rest


def of_xml(data: bytes, rng: Random) -> bytes:
    """Attributes, elements and texts of an XML file; whole numbers inside base64."""
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            found = list(re.finditer(rb'([\w:]+)="([^"]*)"', data))
            if not found:
                return of_text(data, rng)
            one = rng.choice(found)
            return (
                data[: one.start(2)] + rng.choice(_NUMBERS + _WORDS).replace(b'"', b"") + data[one.end(2) :]
            )
        case 4 | 5:
            found = list(re.finditer(rb"<(\w+)\b[^>]*?/>|<(\w+)\b[^>]*>[^<]*</\2>|</?\w+[^>]*>", data))
            if not found:
                return of_text(data, rng)
            one, other = rng.choice(found), rng.choice(found)
            new = rng.choice(
                (b"", one.group() * 2, other.group(), one.group() * 50, b"<![CDATA[" + one.group() + b"]]>")
            )
            return data[: one.start()] + new + data[one.end() :]
        case 6 | 7:
            return _in_base64(data, rng)
        case 8:
            trick = rng.choice(
                (
                    b'<!DOCTYPE a [<!ENTITY b "c">]>',
                    b'<!DOCTYPE a SYSTEM "file:///etc/hostname">',
                    b'<?xml version="1.0" encoding="utf-16"?>',
                    b'<?xml version="1.1" encoding="nothing"?>',
                    b"<a>" * 100,
                    b"&amp;&#x41;&b;",
                    b"<!-- a -->",
                )
            )
            at = rng.choice([0] + [place.start() for place in re.finditer(rb"<", data)])
            return data[:at] + trick + data[at:]
        case _:
            return of_text(data, rng)


def _in_base64(data: bytes, rng: Random) -> bytes:
    found = list(re.finditer(rb">\s*([A-Za-z0-9+/]{8,}={0,2})\s*<", data))
    if not found:
        return of_text(data, rng)
    one = rng.choice(found)
    try:
        raw = base64.b64decode(one.group(1))
    except binascii.Error:
        return data
    at = 8 * rng.randrange(max(min(len(raw) // 8, 8), 1))
    number = rng.choice(
        (0, 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, len(raw), rng.getrandbits(64))
    )
    raw = raw[:at] + struct.pack("<Q", number) + raw[at + 8 :]
    return data[: one.start(1)] + base64.b64encode(raw) + data[one.end(1) :]
