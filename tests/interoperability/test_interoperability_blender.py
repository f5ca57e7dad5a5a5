"""Blender itself runs the guide's lines; run where BLENDER names a Python with bpy, which wants a NumPy of its own."""

from __future__ import annotations

import os
import re
import subprocess

import numpy as np
import pytest

from breastmorph.model.files import write_mode_sequence, write_morph_targets
from docs_world import ROOT

MODES = 5
GUIDE = (ROOT / "docs" / "guides" / "other-programs.md").read_text(encoding="utf-8")
KEYS, PLAIN = (block for block in re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL) if "import bpy" in block)
SHOWN = """
import numpy as np
def shown():
    thing = bpy.context.object
    bpy.context.view_layer.update()
    surface = thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).to_mesh()
    vertices = np.array([vertex.co[:] for vertex in surface.vertices])
    place = np.array(thing.matrix_world)
    return vertices @ place[:3, :3].T + place[:3, 3]
found = {}
"""
EVERY_KEY = """
found["mean"] = shown()
found["names"] = [block.name for block in bpy.context.object.data.shape_keys.key_blocks]
for number, block in enumerate(bpy.context.object.data.shape_keys.key_blocks[1:]):
    for amount in (3, -3):
        block.value = amount
        found[f"mode {number} {amount}"] = shown()
    block.value = 0
"""
COLOURS = """
if len(bpy.context.object.data.color_attributes):
    found["colors"] = [value.color_srgb[:] for value in bpy.context.object.data.color_attributes[0].data]
"""


@pytest.fixture(scope="module")
def blender(tmp_path_factory):
    """Run lines in Blender, in a folder; returns the arrays that they leave in ``found``."""
    program = os.environ.get("BLENDER")
    if not program:
        pytest.skip("set BLENDER to a Python with bpy")

    def run(lines, folder):
        script = tmp_path_factory.mktemp("blender") / "lines.py"
        script.write_text(lines + "\nnp.savez('found.npz', **found)\n")
        subprocess.run([program, str(script)], cwd=folder, check=True, capture_output=True, timeout=300)
        return np.load(folder / "found.npz")

    return run


def ours(vertices):
    """Blender has z up and the front towards -y, and metres; (n, 3) in our axes and mm."""
    return 1000 * np.stack([vertices[:, 0], vertices[:, 2], -vertices[:, 1]], axis=1)


def test_every_mode_is_a_shape_key_of_one_deviation(blender, model, tmp_path, assert_near):
    write_morph_targets(model, tmp_path / "model.glb", modes=MODES)
    found = blender(KEYS + SHOWN + EVERY_KEY, tmp_path)
    assert found["names"].tolist() == ["Basis", *(f"mode {k + 1} (+1 sd)" for k in range(MODES))]
    assert_near(ours(found["mean"]), model.mean)
    for k in range(MODES):
        for amount in (3, -3):
            coefficients = np.eye(MODES)[k] * amount * model.deviations[:MODES]
            assert_near(ours(found[f"mode {k} {amount}"]), model.instance(coefficients))


def test_a_plain_mesh_stands_upright_in_metres(blender, model, tmp_path, assert_near):
    write_mode_sequence(model, tmp_path / "modes", modes=1, frames=2)
    found = blender(PLAIN + SHOWN + "found['mean'] = shown()", tmp_path)
    assert_near(ours(found["mean"]), model.mean)


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl"])
def test_meshes_and_colours(suffix, blender, kit, mesh, assert_near):
    lines = PLAIN.replace("modes/mean.ply", f"mesh.{suffix}").replace("ply_import", f"{suffix}_import")
    found = blender(lines + SHOWN + "found['mean'] = shown()" + COLOURS, kit)
    assert_near(ours(found["mean"]), mesh.vertices, suffix)
    if suffix != "stl":
        np.testing.assert_allclose(255 * found["colors"], mesh.colors, atol=0.1)
