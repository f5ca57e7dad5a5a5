"""The second pass: what a cohort teaches, that nobody teaches herself, and that it stays in the folder."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.batch import cohort_prior
from breastmorph.batch.cohort_prior import AnchorDisplacements, CohortPrior, PriorFitter, ScoreEvidence
from breastmorph.batch.drift import folder_drift
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR
from breastmorph.registration.parameters import CohortPriorParameters, RegistrationParameters
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.target import Target
from breastmorph.registration.warp import warp_onto
from breastmorph.scan.scan import Landmarks
from tiny_cohort import meshes, tiny_recipe, write_scans


@pytest.fixture(scope="module")
def rules():
    """By which three scans are enough to learn from."""
    return replace(
        tiny_recipe(), parameters=RegistrationParameters(cohort_prior=CohortPriorParameters(enough=3))
    )


def told(out):
    """What every record says its subject was told."""
    return {path.stem: json.loads(path.read_text())["learnt"] for path in (out / "registered").glob("*.json")}


def run(found, rules, out, **more):
    return {one.id: one.status for one in register_batch(found, rules, out, InProcess(), learn=True, **more)}


@pytest.fixture(scope="module")
def fitter(small_template):
    return PriorFitter(small_template, RegistrationParameters())


def subjects_of(template, count):
    """People who are the template at another place, size and height."""
    lay = Similarity(np.eye(3), np.array([5.0, 0.0, 0.0]), 1.1)
    return [(f"s{i:02d}", lay.apply(template.mesh.vertices + [0.0, i, 0.0]), lay) for i in range(count)]


def same(one, other):
    return all(
        np.array_equal(a.mean, b.mean) and np.array_equal(a.root, b.root)
        for a, b in zip(one, other, strict=True)
    )


def test_nobody_is_told_what_she_taught(small_template, fitter):
    subjects = subjects_of(small_template, 25)
    changed = list(subjects)
    name, shape, lay = changed[4]
    changed[4] = name, shape + 50.0 * np.sin(shape / 80.0), lay
    before, after = fitter.fit(subjects), fitter.fit(changed)
    assert same(before.for_scan("s04"), after.for_scan("s04"))
    assert not same(before.for_scan("s20"), after.for_scan("s20"))
    assert not same(before.for_scan("a stranger"), after.for_scan("a stranger"))


def test_everybody_is_told_by_nearly_all_others():
    groups = cohort_prior._groups(60, 8)
    assert np.bincount(groups).tolist() == [8, 7, 8, 7, 8, 7, 8, 7]
    assert (
        np.diff(groups) >= 0
    ).all()  # scans of one person, with names side by side, tell each other little


def test_what_a_symmetric_template_learns_is_symmetric(fitter, small_template):
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    basis, mirror = prepared.basis, small_template.coarse_mirror
    scores = np.random.default_rng(1).normal(size=(30, basis.modes.shape[2]))
    prior = prior_of(prepared, scores, mirror)
    fitted = basis.with_prior(prior)
    mean = (fitted.functions.anchors @ fitted.mean).reshape(-1, 3)
    assert np.abs(mean).max() > 0.5
    assert np.abs(mean - mean[mirror] * MIRROR).max() < 0.1 * np.abs(mean).max()


def prior_of(prepared, scores, mirror=None):
    """What people teach whose registrations have these scores (k, q)."""
    moved = np.einsum("aiq,kq->kai", prepared.basis.at_anchors, scores)
    evidence = ScoreEvidence.of(
        prepared, prepared.basis, AnchorDisplacements(moved, np.zeros(len(scores)), mirror)
    )
    return evidence.fit_prior(np.ones(len(scores), dtype=bool))


def test_a_prior_that_was_right_stays_and_nobody_teaches_nothing(small_template):
    """People drawn from the prior, as scans show them, teach it back; without people it is what it was."""
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    basis = prepared.basis
    count = basis.modes.shape[2]
    shown = shown_by_the_template(prepared)
    drawn = np.random.default_rng(2).normal(size=(300, count))
    seen = drawn @ shown @ np.linalg.inv(np.eye(count) + shown)  # what a first pass makes of them
    fitted = basis.with_prior(prior_of(prepared, seen))
    assert 0.85 < (fitted.at_anchors**2).sum() / (basis.at_anchors**2).sum() < 1.15
    evidence = ScoreEvidence.of(
        prepared, basis, AnchorDisplacements(np.zeros((1, *basis.at_anchors.shape[:2])), np.zeros(1))
    )
    nobody = basis.with_prior(evidence.fit_prior(np.zeros(1, dtype=bool)))
    assert np.array_equal(nobody.modes, basis.modes)
    assert np.array_equal(nobody.mean, basis.mean)


def shown_by_the_template(prepared):
    """How precisely a scan of somebody who is the template shows scores."""
    nobody_moved = np.zeros((1, *prepared.basis.at_anchors.shape[:2]))
    return ScoreEvidence.of(prepared, prepared.basis, AnchorDisplacements(nobody_moved, np.zeros(1))).shown[0]


def test_what_goes_together_is_learnt_and_what_nobody_shows_stays_free(small_template):
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    values, ways = np.linalg.eigh(shown_by_the_template(prepared))
    best, hidden = ways[:, -1], ways[:, 0]  # what a scan shows best and worst
    amount = np.random.default_rng(3).normal(size=60)
    root = prior_of(prepared, 3.0 * amount[:, None] * best).root
    sd = {name: np.linalg.norm(root.T @ way) for name, way in (("best", best), ("hidden", hidden))}
    usual = np.median(np.linalg.norm(root.T @ ways[:, -20:-1], axis=0))
    assert sd["best"] > 1.5  # they differ much in this, so it has become cheap
    assert usual < 0.75  # and not at all in what is shown nearly as well
    assert sd["hidden"] > 0.9 if values[0] < 0.1 else sd["hidden"] > usual


def test_evidence_lies_across_the_skin_of_each_person(small_template):
    """Skin that has turned is shown in another direction: what is free on the template is not free on her."""
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    basis, coarse = prepared.basis, prepared.coarse.mesh
    turned = coarse.vertices @ Rotation.from_euler("y", 40.0, degrees=True).as_matrix().T - coarse.vertices
    shown = ScoreEvidence.of(
        prepared, basis, AnchorDisplacements(np.stack([0.0 * turned, turned]), np.zeros(2))
    ).shown
    free = np.linalg.eigh(shown[0])[1][:, 0]
    assert free @ shown[1] @ free > 1.5 * (free @ shown[0] @ free)


def test_what_is_learnt_is_read_back_and_too_few_teach_nothing(small_template, fitter):
    subjects = subjects_of(small_template, 22)
    prior = fitter.fit(subjects, "by hand")
    again = CohortPrior.from_npz(prior.to_npz())
    assert again.ids == prior.ids
    assert again.made_by == "by hand"
    for name in ("s00", "s21", "a stranger"):
        assert same(again.for_scan(name), prior.for_scan(name))
    earlier = io.BytesIO()
    np.savez(earlier, ids=np.array(prior.ids), moved=np.zeros((22, 5, 3)), made_by=np.array("by hand"))
    assert CohortPrior.from_npz(earlier.getvalue()).made_by == ""  # made by no recipe of today
    ((first, *others), *groups) = prior.of_groups
    for damaged in (
        b"no archive",
        prior.to_npz()[:-99],
        replace(prior, of_groups=((replace(first, mean=first.mean * np.nan), *others), *groups)).to_npz(),
        replace(prior, of_groups=((replace(first, root=first.root + np.inf), *others), *groups)).to_npz(),
        replace(prior, of_groups=tuple(prior.of_groups[1:])).to_npz(),
    ):
        with pytest.raises(FileProblem, match="damaged") as said:
            CohortPrior.from_npz(damaged, Path("learnt.npz"))
        assert "register again" in said.value.remedy
    assert fitter.fit(subjects[:5]) is None


def test_skin_that_slides_where_nothing_shows_it_is_known_from_others(small_template):
    """A shift along the skin changes no surface: only people who shift so can tell."""
    prepared = PreparedTemplate(small_template, RegistrationParameters())
    coarse, fine = prepared.coarse.mesh, prepared.fine.mesh
    around = np.cross([0.0, 1.0, 0.0], coarse.vertices)
    slid = 8.0 * around / np.linalg.norm(around, axis=1).max()
    people = AnchorDisplacements(np.repeat(slid[None], 40, axis=0), np.zeros(40))
    prior = ScoreEvidence.of(prepared, prepared.basis, people).fit_prior(np.ones(40, dtype=bool))
    args = (Target.of(fine), fine.vertices, coarse)
    rest = (prepared.fine.landmark_ids, Landmarks.of({}))
    plain, knowing = (
        warp_onto(*args, basis, *rest)[1] for basis in (prepared.basis, prepared.basis.with_prior(prior))
    )
    gone = (knowing - plain)[np.linalg.norm(slid, axis=1) > 3.0]
    assert (gone * slid[np.linalg.norm(slid, axis=1) > 3.0]).sum() > 0.0
    assert np.linalg.norm(plain - coarse.vertices, axis=1).mean() < 1.0


def test_learnt_once_kept_for_later_and_learnt_anew_by_force(rules, tmp_path):
    found = write_scans(tmp_path / "scans", 5)
    out = tmp_path / "out"
    passes = []
    assert set(run(found[:4], rules, out, on_start=lambda *n: passes.append(n)).values()) == {"registered"}
    assert passes == [(4, 0), (4, 0)]
    frozen = (out / "learnt.npz").read_bytes()
    assert set(told(out).values()) == {cohort_prior.digest(frozen)}
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
    assert set(told(out).values()) == {cohort_prior.digest((out / "learnt.npz").read_bytes())}
    (out / "learnt.npz").write_bytes(frozen)
    assert len([one for one in folder_drift(out) if "learnt.npz" in str(one)]) == 5


def test_a_kill_between_the_passes_loses_only_the_second(rules, tmp_path):
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
