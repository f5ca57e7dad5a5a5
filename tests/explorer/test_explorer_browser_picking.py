"""Landmarks in a real browser: guided clicks on the scans of a folder, autosave, mixed-up sides."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.files import load_model, save_model
from breastmorph.scan.landmark_files import load_landmarks
from explorer_window import explore, settled, window
from torso import torso

NEAR = 3.0  # mm: how near a click must come to the true landmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two scans without landmarks, and one that cannot be read."""
    home = tmp_path_factory.mktemp("scans")
    (home / "torso3.ply").write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 9\nend_header\n")
    for name, size in (("torso1", 1.0), ("torso2", 1.3)):
        save_mesh(torso(edge=5.0, size=size)[0], home / f"{name}.ply")
    return home


@pytest.fixture(scope="module")
def entrance(folder, tmp_path_factory, breast_model):
    model = tmp_path_factory.mktemp("model") / "model.h5"
    save_model(breast_model, model)
    with explore(folder, "--model", model, "--by-hand") as found:
        yield found


def shown_pose(page, file) -> Similarity:
    """From the file's coordinates to those of the view."""
    page.wait_for_function("() => explorer.stage.scan !== null && explorer.stage.scan !== undefined")
    there = np.array(page.evaluate("Array.from(explorer.stage.scan.positions)")).reshape(-1, 3)
    return Similarity.fit(load_mesh(file).vertices, there)


def click_at(page, point) -> None:
    """Look from where the point of the skin can be seen, and click it with the mouse."""
    place = """([view, point]) => { explorer.stage.lookFrom(view);
        const [x, y] = explorer.stage.view.project(point), hit = explorer.stage.view.pick(x, y);
        return hit && Math.hypot(...hit.point.map((value, i) => value - point[i])) < 2 ? [x, y] : null; }"""
    for view in ("front", "below", "left", "right", "oblique-left", "oblique-right"):
        spot = page.evaluate(place, [view, list(point)])
        if spot:
            page.mouse.click(*spot)
            return
    raise AssertionError("the point cannot be seen from any side")


def set_landmark(page, name, point) -> None:
    page.click(f"#folder-picker [data-landmark={name}]")
    click_at(page, point)
    page.wait_for_function(
        "name => explorer.tabs.folder.state().landmarks[name] && explorer.picker.chosen === null", arg=name
    )


def saved(folder, scan):
    return load_landmarks(folder / "landmarks" / f"{scan}.json")


def test_a_folder_of_scans_is_picked_point_by_point(tab, folder):
    page, truth = tab.page, torso(edge=5.0)[1]
    page.wait_for_function("() => explorer.picker && explorer.stage.scan")
    page.wait_for_selector("#folder-picker .next")
    assert "0 of 3" in page.inner_text("#folder-progress")
    assert page.inner_text("#folder-picker .next").startswith("Next: ")
    assert page.get_attribute("#folder-picker svg", "aria-label").startswith("Drawing")
    assert "torso1" in page.inner_text("#folder-scan option:checked")

    # Without a mouse: what stands in the middle of the view.
    page.click("#folder-picker [data-landmark=xiphoid]")
    page.evaluate("explorer.stage.lookFrom('front')")
    page.focus(".bv-canvas")
    target = page.evaluate("explorer.stage.lineOfSight(...explorer.stage.centre()).point")
    page.keyboard.press("Enter")
    lies_at = "y => Math.abs((explorer.tabs.folder.state().landmarks.xiphoid ?? [0, 1e9])[1] - y) < 1"
    page.wait_for_function(lies_at, arg=target[1])
    page.click("#folder-picker [data-part=undo]")
    page.wait_for_function("() => !('xiphoid' in explorer.tabs.folder.state().landmarks)")

    # All of them by clicks, in the order in which the page asks.
    pose = shown_pose(page, folder / "torso1.ply")
    page.uncheck("#folder-picker [data-part=snap]")  # this torso's lower poles are not its lowest points
    for _ in range(8):
        name = page.evaluate("explorer.picker.current()")
        click_at(page, pose.apply(truth[name][None])[0])
        page.wait_for_function("name => name in explorer.tabs.folder.state().landmarks", arg=name)
    found = saved(folder, "torso1")
    errors = {name: float(np.linalg.norm(found[name] - truth[name])) for name in truth.names}
    assert max(errors.values()) < NEAR, errors
    page.wait_for_function("() => document.querySelector('#folder-progress').innerText.includes('1 of 3')")
    assert "Saved" in page.inner_text("#folder-picker [data-part=saved]")

    # A step back, also in the file.
    before = found["xiphoid"]
    set_landmark(page, "xiphoid", pose.apply(truth["nipple_left"][None])[0])
    page.wait_for_function("() => document.querySelector('#status').innerText.length > 0")
    assert np.linalg.norm(saved(folder, "torso1")["xiphoid"] - before) > 20
    page.click("#folder-picker [data-part=undo]")
    page.wait_for_function(lies_at, arg=float(pose.apply(before[None])[0, 1]))
    np.testing.assert_allclose(saved(folder, "torso1")["xiphoid"], before, atol=0.1)

    # Dragged along the skin: the point moves, not the view.
    settled(page)
    page.evaluate("explorer.stage.lookFrom('front')")
    page.wait_for_timeout(300)  # its name is where the drawing came to rest
    looks = "explorer.stage.view.camera.position.toArray()"
    marker = "explorer.stage.view.markers.find(({ name }) => name === 'xiphoid').position"
    x, y = page.evaluate(f"explorer.stage.view.project({marker})")
    eye = page.evaluate(looks)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 10, y - 20, steps=3)
    target = page.evaluate("([x, y]) => explorer.stage.lineOfSight(x, y).point", [x + 10, y - 20])
    page.mouse.up()
    page.wait_for_function(lies_at, arg=target[1])
    assert page.evaluate(looks) == eye
    assert np.linalg.norm(saved(folder, "torso1")["xiphoid"] - before) > 5.0
    page.click("#folder-picker [data-part=undo]")
    page.wait_for_function(lies_at, arg=float(pose.apply(before[None])[0, 1]))

    # A missing side needs fewer points.
    page.select_option("#folder-picker [data-part=absent]", "left")
    page.wait_for_function("() => explorer.tabs.folder.state().absent_side === 'left'")
    assert page.is_disabled("#folder-picker [data-landmark=lower_pole_left]")
    assert not re.search("left", page.inner_text("#folder-picker .next"), re.IGNORECASE)
    page.select_option("#folder-picker [data-part=absent]", "")
    page.wait_for_function("() => explorer.tabs.folder.state().absent_side === ''")
    kept = json.loads((folder / "landmarks" / "torso1.json").read_text(encoding="utf-8"))
    assert kept["xiphoid"]

    # On the next scan left and right are mixed up, noticed and exchanged.
    truth = torso(edge=5.0, size=1.3)[1]
    page.click("#folder-next")
    settled(page)
    page.wait_for_function("() => explorer.tabs.folder.state().name.includes('torso2')")
    pose = shown_pose(page, folder / "torso2.ply")
    at = {name: pose.apply(truth[name][None])[0] for name in truth.names}
    for name, place in (
        ("sternal_notch", "sternal_notch"),
        ("xiphoid", "xiphoid"),
        ("nipple_left", "nipple_right"),
        ("nipple_right", "nipple_left"),
    ):
        set_landmark(page, name, at[place])
    warning = "#folder-picker [data-part=swapped]"
    page.wait_for_selector(f"{warning}:not([hidden])")
    assert "mixed up" in page.inner_text(warning)
    page.click("#folder-picker [data-part=swap]")
    page.wait_for_selector(warning, state="hidden")
    assert np.linalg.norm(saved(folder, "torso2")["nipple_left"] - truth["nipple_left"]) < NEAR

    # One that cannot be read closes the one before: no click lands on it.
    files = {path.name: path.read_bytes() for path in (folder / "landmarks").iterdir()}
    assert "torso3" in page.inner_text("#folder-scan")
    page.select_option("#folder-scan", "2")
    page.wait_for_selector("#error:not([hidden])")
    settled(page)
    assert "unreadable" in page.inner_text("#folder-scan option:checked")
    assert page.evaluate("explorer.stage.scan === null && explorer.picker === null")
    assert not page.evaluate("explorer.stage.view.meshes.has('scan')")
    assert page.is_hidden("#folder-picker .picker")
    box = page.locator(".bv-canvas").bounding_box()
    for share in (0.4, 0.5, 0.6):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + share * box["height"])
    page.wait_for_timeout(300)
    assert {path.name: path.read_bytes() for path in (folder / "landmarks").iterdir()} == files
    assert (folder / "torso3.ply").is_file()
    page.select_option("#folder-scan", "0")  # and the page goes on
    page.wait_for_function("() => explorer.tabs.folder.state()?.name.includes('torso1')")
    page.wait_for_function("() => explorer.picker !== null && explorer.stage.scan !== null")
    tab.errors[:] = [text for text in tab.errors if "status of 422" not in text]


def test_a_models_missing_landmark_is_clicked_once_and_kept_in_a_file(browser, tmp_path, breast_model):
    model, path = breast_model, tmp_path / "foreign.h5"
    known = {name: vertex for name, vertex in model.landmark_ids.items() if name != "sternal_notch"}
    save_model(replace(model, landmark_ids=known), path)
    with explore(path) as entrance, window(browser, entrance) as tab:
        page = tab.page
        assert "sternal notch" in page.inner_text("#model-landmarks")
        page.click("#tab-measures")
        page.wait_for_selector("#edit-NL-NR-number")
        assert page.locator("#edit-SN-NL-number").count() == 0
        page.click("#tab-model")
        page.click("#model-pick")
        page.wait_for_function("() => explorer.picker !== null && explorer.stage.scan !== null")
        click_at(page, model.mean[model.landmark_ids["sternal_notch"]])
        page.click("text=Use these landmarks")
        page.wait_for_selector("#model-save")
        page.wait_for_selector("#strip-SN-NL")
        page.click("#tab-measures")
        page.wait_for_selector("#edit-SN-NL-number")  # what needs the landmark can be edited now
        page.click("#tab-model")
        with page.expect_download() as waiting:
            page.click("#model-save")
        waiting.value.save_as(tmp_path / "complete.h5")
        found = load_model(tmp_path / "complete.h5")
        off = (
            model.mean[found.landmark_ids["sternal_notch"]] - model.mean[model.landmark_ids["sternal_notch"]]
        )
        assert np.linalg.norm(off) < 10.0
        assert tab.complaints() == []
