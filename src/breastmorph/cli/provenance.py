"""What a command's result was made from: version, parameters and hashes of the inputs, never a path."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breastmorph import __version__
from breastmorph.foundation.files import file_hash
from breastmorph.foundation.text import shown

if TYPE_CHECKING:
    from breastmorph.batch.registered_folder import RegisteredFolder

_NO_INPUT = ("as_json", "csv_file", "figures", "out")  # how and where results go does not change them


def provenance() -> dict[str, Any]:
    """Of the command that runs now: the same inputs and parameters give the same record.

    Returns
    -------
    dict
        ``software``; ``command``; ``parameters`` as given or by default, paths by their last part; ``inputs``, a
        SHA-256 for every file or folder named in a parameter.
    """
    context = click.get_current_context()
    parameters: dict[str, Any] = {}
    inputs: dict[str, str] = {}
    for name, value in sorted(context.params.items()):
        if value is None or name in _NO_INPUT:
            continue
        several = value if isinstance(value, tuple) else (value,)
        paths = [one for one in several if isinstance(one, Path)]
        for k, path in enumerate(paths, 1):
            key = name if len(paths) == 1 else f"{name} {k}"
            inputs[key] = _folder_hash(path) if path.is_dir() else file_hash(path)
        plain = [shown(one.name) if isinstance(one, Path) else one for one in several]
        parameters[name] = plain if isinstance(value, tuple) else plain[0]
    return {
        "software": f"BreastMorph {__version__}",
        "command": context.info_name,
        "parameters": parameters,
        "inputs": inputs,
    }


def _folder_hash(path: Path) -> str:
    """Of a registered folder what its records say of the meshes; of another one the names and contents of its files."""
    from breastmorph.batch.registered_folder import RegisteredFolder  # brings the registration with it

    folder = RegisteredFolder(path)
    if folder.registered.is_dir():
        parts = [f"{scan_id} {sorted(_meshes(folder, scan_id))}" for scan_id in folder.ids()]
    else:
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        parts = [f"{shown(file.name)} {file_hash(file)}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _meshes(folder: RegisteredFolder, scan_id: str) -> list[str]:
    outputs = folder.record(scan_id).get("outputs")
    return (
        [str(digest) for name, digest in outputs.items() if name.endswith(".ply")]
        if isinstance(outputs, dict)
        else []
    )
