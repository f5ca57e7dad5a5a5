"""The second pass: what a cohort teaches, that nobody teaches herself, and that it stays in the folder."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breastmorph.batch import learning
from breastmorph.batch.engine import InProcess, register_batch
from breastmorph.batch.learning import Learnt, Teacher
from breastmorph.batch.registered_folder import folder_drift
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.rigid import Target
from breastmorph.registration.warp import Population, slide_onto
from breastmorph.scan.scan import Landmarks
from tiny_cohort import meshes, tiny_recipe, write_scans


@pytest.fixture(scope="module")
def rules():
    return tiny_recipe()


@pytest.fixture
def few_are_enough(monkeypatch):
    monkeypatch.setattr(learning, "ENOUGH", 3)


def told(out):
    """What every record says its subject was told."""
    return {path.stem: json.loads(path.read_text())["learnt"] for path in (out / "registered").glob("*.json")}


def run(found, rules, out, **more):
    return {one.id: one.status for one in register_batch(found, rules, out, InProcess(), learn=True, **more)}


def test_nobody_is_told_what_she_taught():
    rng = np.random.default_rng(0)
    moved = rng.normal(size=(25, 30, 3))
    names, sizes = tuple(f"s{i:02d}" for i in range(25)), rng.normal(size=25)
    other = moved.copy()
    other[4] += 50.0
    before, after = (Learnt(names, one, sizes).population("s04") for one in (moved, other))
    assert np.array_equal(before.moved, after.moved)
    assert before.count == 24
    assert np.array_equal(before.sizes, np.delete(sizes, 4))
    assert not np.array_equal(after.moved, Learnt(names, other, sizes).population("a stranger").moved[:24])


def test_a_population_of_a_symmetric_template_is_symmetric():
    rng = np.random.default_rng(1)
    mirror = np.r_[np.arange(15, 30), np.arange(15)]
    moved, sizes = rng.normal(size=(24, 30, 3)), rng.normal(size=24)
    known = Learnt(tuple(map(str, range(24))), moved, sizes, mirror).population("")
    assert known.count == 24
    assert np.array_equal(known.sizes, np.concatenate([sizes, sizes]))
    assert np.allclose(known.moved[24:][:, mirror] * MIRROR, known.moved[:24])


def people_of(basis, scores):
    """A population whose registrations have these scores (k, q)."""
    return Population(np.einsum("aiq,kq->kai", basis.at_anchors, scores), np.zeros(len(scores)), len(scores))


def test_a_prior_that_was_right_stays_and_nobody_teaches_nothing(small_template):
    """People drawn from the prior, as scans show them, teach it back; without people it is what it was."""
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    basis, shown = prepared.basis, prepared.shown
    count = len(shown)
    drawn = np.random.default_rng(2).normal(size=(400, count))
    seen = drawn @ shown @ np.linalg.inv(np.eye(count) + shown)  # what a first pass makes of them
    variance = {
        name: (told.at_anchors**2).sum()
        for name, told in (("before", basis), ("after", basis.knowing(people_of(basis, seen), shown)))
    }
    assert 0.9 < variance["after"] / variance["before"] < 1.1
    nobody = basis.knowing(Population(np.zeros((1, len(basis.at_anchors), 3)), np.zeros(1), 0), shown)
    assert np.allclose(nobody.modes, basis.modes)
    assert np.allclose(nobody.mean, basis.mean)


def test_what_goes_together_is_learnt_and_what_nobody_shows_stays_free(small_template):
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    basis, shown = prepared.basis, prepared.shown
    values, ways = np.linalg.eigh(shown)
    best, hidden = ways[:, -1], ways[:, 0]  # what a scan shows best and worst
    amount = np.random.default_rng(3).normal(size=60)
    told = basis.knowing(people_of(basis, 3.0 * amount[:, None] * best), shown)
    root = np.linalg.lstsq(
        basis.at_anchors.reshape(-1, len(shown)), told.at_anchors.reshape(-1, len(shown)), rcond=None
    )[0]
    sd = {name: np.linalg.norm(root.T @ way) for name, way in (("best", best), ("hidden", hidden))}
    usual = np.median(np.linalg.norm(root.T @ ways[:, -20:-1], axis=0))
    assert sd["best"] > 1.5  # they differ much in this, so it has become cheap
    assert usual < 0.75  # and not at all in what is shown nearly as well
    assert sd["hidden"] > 0.9 if values[0] < 0.1 else sd["hidden"] > usual


def test_what_is_learnt_is_read_back_and_too_few_teach_nothing(small_template):
    shape = small_template.mesh.vertices
    lay = Similarity(np.eye(3), np.array([5.0, 0.0, 0.0]), 1.1)
    subjects = [(f"s{i:02d}", lay.apply(shape + [0.0, i, 0.0]), lay) for i in range(22)]
    learnt = Teacher(small_template).learnt(subjects, "by hand")
    assert np.allclose(learnt.moved[7], [0.0, 7.0, 0.0])
    again = Learnt.from_npz(learnt.to_npz())
    assert again.ids == learnt.ids
    assert np.allclose(again.sizes, np.log(1.1))
    assert np.allclose(again.moved, learnt.moved, atol=1e-5)
    assert again.made_by == "by hand"
    with np.load(io.BytesIO(learnt.to_npz())) as parts:
        earlier = {name: parts[name] for name in parts if name != "sizes"}
    kept = io.BytesIO()
    np.savez(kept, **earlier)
    assert Learnt.from_npz(kept.getvalue()).made_by == ""  # of an earlier version: made by no recipe of today
    for damaged in (
        b"no archive",
        learnt.to_npz()[:-99],
        replace(learnt, moved=learnt.moved * np.nan).to_npz(),
        replace(learnt, sizes=learnt.sizes[:-1]).to_npz(),
        replace(learnt, sizes=learnt.sizes + np.inf).to_npz(),
    ):
        with pytest.raises(FileProblem, match="damaged") as said:
            Learnt.from_npz(damaged, Path("learnt.npz"))
        assert "register again" in said.value.remedy
    assert Teacher(small_template).learnt(subjects[:5]) is None


def test_skin_that_slides_where_nothing_shows_it_is_known_from_others(small_template):
    """A shift along the skin changes no surface: only people who shift so can tell."""
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    coarse, fine = prepared.coarse.mesh, prepared.fine.mesh
    around = np.cross([0.0, 1.0, 0.0], coarse.vertices)
    slid = 8.0 * around / np.linalg.norm(around, axis=1).max()
    people = Population(np.repeat(slid[None], 40, axis=0), np.zeros(40), 40)
    args = (Target.of(fine), fine.vertices, coarse)
    rest = (prepared.fine.landmark_ids, Landmarks.of({}))
    plain, knowing = (
        slide_onto(*args, basis, *rest)[1]
        for basis in (prepared.basis, prepared.basis.knowing(people, prepared.shown))
    )
    gone = (knowing - plain)[np.linalg.norm(slid, axis=1) > 3.0]
    assert (gone * slid[np.linalg.norm(slid, axis=1) > 3.0]).sum() > 0.0
    assert np.linalg.norm(plain - coarse.vertices, axis=1).mean() < 1.0


def test_learnt_once_kept_for_later_and_learnt_anew_by_force(rules, tmp_path, few_are_enough):
    found = write_scans(tmp_path / "scans", 5)
    out = tmp_path / "out"
    passes = []
    assert set(run(found[:4], rules, out, on_start=lambda *n: passes.append(n)).values()) == {"registered"}
    assert passes == [(4, 0), (4, 0)]
    frozen = (out / "learnt.npz").read_bytes()
    assert set(told(out).values()) == {learning.digest(frozen)}
    before = meshes(out)
    # Nothing to do; and somebody who comes later is told the same, at once.
    passes.clear()
    assert run(found, rules, out, on_start=lambda *n: passes.append(n))[found[4].id] == "registered"
    assert passes == [(1, 4)]
    assert (out / "learnt.npz").read_bytes() == frozen
    assert {name: meshes(out)[name] for name in before} == before
    assert not list(folder_drift(out))
    run(found, rules, out, force=True)
    assert (out / "learnt.npz").read_bytes() != frozen
    assert set(told(out).values()) == {learning.digest((out / "learnt.npz").read_bytes())}
    (out / "learnt.npz").write_bytes(frozen)
    assert len([one for one in folder_drift(out) if "learnt.npz" in str(one)]) == 5


def test_a_kill_between_the_passes_loses_only_the_second(rules, tmp_path, few_are_enough):
    found = write_scans(tmp_path / "scans", 4)
    whole = tmp_path / "whole"
    run(found, rules, whole)
    out = tmp_path / "out"
    seen = []

    def stop_in_the_second(outcome):
        seen.append(outcome.id)
        if len(seen) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(found, rules, out, on_done=stop_in_the_second)
    passes = []
    run(found, rules, out, on_start=lambda *n: passes.append(n))
    assert passes == [(2, 2)]
    assert meshes(out) == meshes(whole)


def test_too_few_are_registered_once_and_without_learning_all_is_as_before(rules, tmp_path):
    found = write_scans(tmp_path / "scans", 2)
    run(found, rules, tmp_path / "few")
    register_batch(found, rules, tmp_path / "plain", InProcess())
    assert meshes(tmp_path / "few") == meshes(tmp_path / "plain")
    assert set(told(tmp_path / "few").values()) == {""}
