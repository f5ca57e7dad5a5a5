"""Mutations of files that hold arrays: NumPy archives, .npy files and HDF5."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from random import Random
from typing import Any

import numpy as np

from fuzz.mutation import of_bytes, of_json


def of_npz(data: bytes, rng: Random) -> bytes:
    """One array of a NumPy archive with another type, shape or content; or the archive's own members."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # an archive that was broken before
        return of_bytes(data, rng)
    if not members:
        return data
    name = rng.choice(sorted(members))
    match rng.randrange(6):
        case _ if name.endswith(".json"):
            members[name] = of_json(members[name], rng)
        case 0:
            del members[name]
        case 1:
            members[name] = of_bytes(members[name], rng)
        case 2:
            members[name] = of_npy_header(members[name], rng)
        case 3:
            members[name] = members[rng.choice(sorted(members))]
        case _:
            members[name] = _other_array(members[name], rng)
    method = (
        zipfile.ZIP_LZMA if rng.randrange(50) == 0 else rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content, method)
    return buffer.getvalue()


def of_npy_header(data: bytes, rng: Random) -> bytes:
    """The description at the beginning of a .npy file."""
    head = data[:200]
    dtype = rng.choice(
        (b"'<f8'", b"'|O'", b"'<U9'", b"'>i4'", b"'<c16'", b"'|V8'", b"'<M8[s]'", b"'|S900000000'")
    )
    shape = rng.choice(
        (b"()", b"(0,)", b"(-1,)", b"(2147483647,)", b"(99999, 99999)", b"(0, 9223372036854775807)")
    )
    match rng.randrange(3):
        case 0:
            head = re.sub(rb"'[<>|=][a-zA-Z]\d+'", dtype, head, count=1)
        case 1:
            head = re.sub(rb"\([\d, ]*\)", shape, head, count=1)
        case _:
            head = of_bytes(head, rng)
    return head + data[200:]


def _other_array(content: bytes, rng: Random) -> bytes:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:  # a member that was broken before
        return content
    return npy_bytes(changed_array(array, rng))


def npy_bytes(array: np.ndarray) -> bytes:
    """An array as the bytes of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def changed_array(array: np.ndarray, rng: Random) -> np.ndarray:
    """An array with other values, type or shape."""
    special = (np.nan, np.inf, -np.inf, 1e308, 1e38, -1.0, 2.0**40, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match rng.randrange(7):
            case 0 | 1 if array.dtype.kind in "fiu" and array.size:
                array = array.astype(np.float64) if rng.randrange(2) else array.copy()
                array.reshape(-1)[rng.randrange(array.size)] = np.array(rng.choice(special)).astype(
                    array.dtype
                )
            case 2:
                kind = rng.choice(("f4", "f2", "f8", "i8", "u1", "u8", "c16", "U20", "S3", "?", "g"))
                array = array.astype(kind) if array.dtype.kind in "fiu" else array
            case 3:
                array = array.reshape(-1)[: rng.randrange(array.size + 1)]
            case 4:
                array = array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1))))
            case 5:
                array = array.T if rng.randrange(2) else np.concatenate([array.reshape(-1)] * 2)
            case _:
                array = np.array(rng.choice((0, -1, "", "x" * 50, 1e300, np.nan)))
    return array


def of_hdf5(data: bytes, rng: Random) -> bytes:
    """One object of an HDF5 file replaced, removed, linked elsewhere, chunked or compressed."""
    import h5py

    buffer = io.BytesIO(data)
    try:
        with h5py.File(buffer, "r+") as file:
            names: list[str] = []
            file.visit(names.append)
            if names:
                _changed_object(file, names, rng)
    except Exception:  # a file that was broken before
        return of_bytes(data, rng)
    return buffer.getvalue()


def _changed_object(file: Any, names: list[str], rng: Random) -> None:
    import h5py

    name = rng.choice(names)
    item = file[name]
    small = isinstance(item, h5py.Dataset) and item.shape is not None and item.nbytes < 10**5
    value = item[()] if small else np.arange(6.0)
    match rng.randrange(9):
        case 0:
            del file[name]
        case 1 | 2 | 3 if isinstance(value, np.ndarray):
            del file[name]
            array = changed_array(value, rng)
            file[name] = array.astype("S") if array.dtype.kind == "U" else array
        case 4:
            del file[name]
            file[name] = h5py.SoftLink("/" + rng.choice([*names, name, "nowhere"]))
        case 5:
            del file[name]
            file[name] = h5py.ExternalLink(
                rng.choice(("elsewhere.h5", "/etc/hostname", "input.h5")), "/model/mean"
            )
        case 6:
            del file[name]
            chunk = rng.choice((1, 3, 1000, 10**6))
            size = rng.choice((0, 7, 1000, 10**6, 10**9))
            how = rng.choice(
                (
                    {},
                    {"compression": "gzip"},
                    {"compression": "lzf"},
                    {"scaleoffset": 3},
                    {"fletcher32": True},
                )
            )
            kind = "i4" if "scaleoffset" in how else rng.choice(("f4", "i1", "f8"))
            made = file.create_dataset(name, (size,), kind, chunks=(chunk,), maxshape=(None,), **how)
            if size:
                made[:5] = 1
        case 7:
            item.attrs[rng.choice(("name", "datasetType"))] = rng.choice(
                ("x", "vtkPolyDataRepresenter", 5, np.arange(4.0))
            )
        case _:
            del file[name]
            file[name] = rng.choice((b"text", 5, -1.0, np.nan, np.zeros((3, 3)), h5py.Empty("f4")))
