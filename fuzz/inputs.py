"""Inputs: seeds after a few mutations that know the file's structure, its bytes, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fuzz.array_mutation import of_hdf5, of_npy_header, of_npz
from fuzz.mutation import of_bytes, of_glb, of_headed, of_json, of_records, of_text, of_xml

Mutation = Callable[[bytes, Random], bytes]
_LONGEST = 400_000  # bytes of an input

LAYOUTS: dict[str, Mutation] = {
    "text": of_text,
    "headed": of_headed,
    "records": of_records,
    "json": of_json,
    "glb": of_glb,
    "xml": of_xml,
    "npz": of_npz,
    "npy": of_npy_header,
    "hdf5": of_hdf5,
    "bytes": of_bytes,
}


def mutated(seeds: Sequence[bytes], layout: str, rng: Random) -> bytes:
    """One input: a seed after a few mutations, of its structure, of its bytes, or of both."""
    data = seeds[rng.randrange(len(seeds))]
    kind = rng.randrange(10)
    if kind < 7:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            data = LAYOUTS[layout](data, rng)
    if kind >= 5:
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = of_bytes(data, rng, seeds)
    return data[:_LONGEST]
