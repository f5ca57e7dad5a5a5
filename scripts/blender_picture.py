"""Draw the guide's picture with Blender: the shape key of mode 1 at -1.5, 0 and +1.5 standard deviations.

    python -c "import breastmorph as bm; bm.demo_model().save('model.glb')"
    python-with-bpy scripts/blender_picture.py model.glb docs/pictures/blender.png

It runs where ``bpy`` is installed (Blender as a Python module), not where BreastMorph is.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

bpy: Any = import_module("bpy")
WIDTH, HEIGHT = 900, 340
AMOUNTS = (-1.5, 0.0, 1.5)


def look(thing: Any, direction: tuple[float, float, float]) -> None:
    """Place a camera or a lamp that looks along a direction."""
    thing.rotation_euler = import_module("mathutils").Vector(direction).to_track_quat("-Z", "Y").to_euler()
    bpy.context.scene.collection.objects.link(thing)


def draw(model: str, picture: str) -> None:
    """Import the model three times, move its key, render on white."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    for place, amount in zip((-0.33, 0.0, 0.33), AMOUNTS, strict=True):
        bpy.ops.import_scene.gltf(filepath=model)
        torso = bpy.context.object
        torso.location.x = place
        key = torso.data.shape_keys.key_blocks["mode 1 (+1 sd)"]
        key.slider_min, key.slider_max, key.value = -3.0, 3.0, amount
    camera = bpy.data.cameras.new("camera")
    camera.type, camera.ortho_scale = "ORTHO", 0.97
    scene.camera = bpy.data.objects.new("camera", camera)
    scene.camera.location = (0.35, -2.0, 0.25)
    look(scene.camera, (-0.35, 2.0, -0.23))
    for energy, direction in ((2.4, (1.0, 1.0, -1.1)), (0.5, (-1.0, 0.9, 0.0))):
        light = bpy.data.lights.new("light", "SUN")
        light.energy, light.angle = energy, 0.5
        look(bpy.data.objects.new("light", light), direction)
    scene.world = bpy.data.worlds.new("world")
    scene.world.color = (0.3, 0.3, 0.3)
    scene.render.engine, scene.cycles.device, scene.cycles.samples = "CYCLES", "CPU", 20
    scene.render.film_transparent, scene.view_settings.view_transform = True, "Standard"
    scene.render.resolution_x, scene.render.resolution_y = WIDTH, HEIGHT
    scene.render.filepath = picture
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(picture)
    levels = np.array(image.pixels[:]).reshape(-1, 4)
    levels = levels * levels[:, 3:] + (1.0 - levels[:, 3:])
    image.pixels[:] = levels.ravel().tolist()
    image.file_format = "PNG"
    image.save(filepath=picture)


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2])
