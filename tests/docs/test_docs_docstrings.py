"""Every public function has an example in its docstring, and the example is true."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import breastmorph as bm
from breast_cohort import breast_shapes
from breastmorph.cohort import Cohort
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.template import default_template, files, from_npz
from docs_world import small_template
from python_world import write_world
from small_cohort import random_shapes, write_registered

FUNCTIONS = [name for name in bm.__all__ if inspect.isfunction(getattr(bm, name))]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder of files that examples name, and the values that they start from; its default template is small."""
    folder = tmp_path_factory.mktemp("docstrings")
    template = from_npz(small_template(tmp_path_factory).read_bytes())
    write_world(folder, 1, template)
    write_registered(folder / "registered-cohort", random_shapes(4))
    model = build_model(
        Cohort.of(breast_shapes(12, template=template), template), BuildParameters(keep_scores=True)
    )
    model.save(folder / "model.h5")
    demo = bm.demo_model()  # with the triangles of the real default template
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_DEFAULT", folder / "template.npz")
        patch.setattr("breastmorph.model.demo_model.demo_model", lambda: demo)
        patch.chdir(folder)
        default_template.cache_clear()
        scan = bm.load_scan("scans/s0.ply", "landmarks")
        yield {"bm": bm, "np": np, "model": model, "scan": scan, "registered": bm.register(scan)}
    default_template.cache_clear()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_has_an_example_that_runs(name, world):
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(bm, name), name, globs=dict(world))
    assert example.examples, f"bm.{name} has no example"
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not runner.run(example, out=report.append).failed, "".join(report)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_states_what_it_takes_and_returns(name):
    signature, text = inspect.signature(getattr(bm, name)), inspect.getdoc(getattr(bm, name))
    assert (signature.return_annotation != "None") == ("Returns\n---" in text)
    assert bool(signature.parameters) == ("Parameters\n---" in text)
