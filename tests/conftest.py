"""What all tests start from, on whatever machine: what property tests draw, Ctrl-C, the terminal, a browser, people."""

import gc
import os
import pickle
import signal
from collections import Counter
from functools import wraps
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import breastmorph
from browser import open_browser

# The same cases in every run of `make test`, new ones in `make fuzz`.
settings.register_profile("same", max_examples=40, deadline=None, derandomize=True, database=None)
settings.register_profile("new", max_examples=1000, deadline=None)
settings.load_profile("same")

# A shell's `make test &` starts with Ctrl-C ignored. Processes that tests start would inherit that, and never stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Build services often set these; output of commands would then be coloured, or cut at another width.
for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES", "TERM"):
    os.environ.pop(name, None)

# Nobody pulls the plug while tests run: to wait for the disk after each of their thousands of files tells nothing.
os.fsync = lambda descriptor: None

# `make wheel-test`: the sources must not come before what is installed, in no process of the tests.
installed = os.environ.get("BREASTMORPH_INSTALLED")
if installed and not Path(breastmorph.__file__).is_relative_to(installed):
    pytest.exit(f"{breastmorph.__file__} would be tested, not what is installed in {installed}", returncode=4)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


# --------------------------------------------------------------------------------------------------------------------
# Whom tests share: made once, by modules beside this one, which also make others of their kind. Imported late, so that
# a test without them starts at once.
# --------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def small_template():
    """A symmetric template of about 650 vertices."""
    from small_cohort import small_template

    return small_template()


@pytest.fixture(scope="session")
def breast_template():
    """A torso of some 1700 vertices with all landmarks."""
    from breast_cohort import breast_template

    return breast_template()


@pytest.fixture(scope="session")
def breast_model():
    """A model of forty such torsos that differ by smooth local bumps."""
    from breast_cohort import breast_model

    return breast_model()


@pytest.fixture(scope="session")
def predictor():
    """What predicts a right breast from a model of thirty people whose breasts are alike."""
    from predicted_people import predictor

    return predictor()


@pytest.fixture(scope="session")
def strangers():
    """Twelve people of that kind whom the model does not know."""
    from predicted_people import strangers

    return strangers()


@pytest.fixture(scope="session")
def features():
    """The straight measures of ``breast_model``, which edits change."""
    from edited_people import features

    return features()


@pytest.fixture(scope="session")
def editor():
    """Edits the mean of ``breast_model``."""
    from edited_people import editor

    return editor()


@pytest.fixture(scope="session")
def stranger():
    """Somebody outside the cohort of ``breast_model``, with a bump that it cannot express."""
    from edited_people import stranger

    return stranger()


@pytest.fixture
def blank_pictures(monkeypatch):
    """Figures are composed but their pages stay empty: drawing takes most of the time of who only wants the files."""
    from matplotlib.figure import Figure

    save = Figure.savefig

    def saved(figure, *where, **how):
        figure.clear()
        figure.set_layout_engine("none")
        save(figure, *where, **how)

    monkeypatch.setattr(Figure, "savefig", saved)


_found: dict[bytes, object] = {}
_seen: list[tuple] = []
# Where the check's second look at the landmarks that a person set is asked about. Elsewhere it would only cost half a
# second for every scan, for a warning that no test there waits for.
_LOOKED_AT = {"docs", "test_explorer_picking", "test_scan_finder"}


@pytest.fixture(scope="module", autouse=True)
def looks_once(request):
    """What the nets say of a scan they say once a process: dozens of tests check the same few scans.

    Tests of trust ask whether the same comes out twice, and get nothing that is remembered.
    """
    where = {*request.path.parts, request.path.stem}
    if "trust" in where:
        yield
        return
    from breastmorph.scan import check, finder
    from breastmorph.scan.scan import Landmarks

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "find_landmarks", _remembered(check.find_landmarks))
        patch.setattr(finder, "_found_from", _seen_again(finder._found_from))
        if not where & _LOOKED_AT:
            patch.setattr(check, "recheck_landmarks", lambda *_: ([], Landmarks.of({})))
        yield


def _remembered(look):
    @wraps(look)
    def found(*scan, **told):
        key = sha256(pickle.dumps((scan, sorted(told.items())))).digest()
        if key not in _found:
            _found[key] = look(*scan, **told)
        return _found[key]

    return found


def _seen_again(look):
    """A surface without colour, upright and in mm, is the same one whatever unit its file was in."""

    @wraps(look)
    def seen(body, skin, stance, there=()):
        place = np.vstack([body.vertices, stance.rotation, stance.translation])
        plain = body.colors is None and body.texture is None and not there
        for faces, where, answer in _seen if plain else ():
            same = where.shape == place.shape and np.array_equal(faces, body.faces)
            if same and np.abs(where - place).max() < 1e-4:  # mm
                return answer
        answer = look(body, skin, stance, there)
        if plain:
            _seen.append((body.faces, place, answer))
        return answer

    return seen


_OF_PHANTOMS = ("test_phantom", "test_scan_finder", "test_scan_suspicion")
_LONG = {"browser", "kill", "cluster", "slow"}


def _together(file: Path) -> str:
    """The tests of a file stay in one process, and those of phantoms: their first one takes seconds in each."""
    return "phantoms" if file.stem.startswith(_OF_PHANTOMS) else file.stem


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return _together(Path(super()._split_scope(nodeid)))

    config.option.loadscopereorder = False  # but in the order of the collection, which is one of time
    return Together(config, log)


def pytest_collection_finish():
    """What is loaded by now stays until the end: the collector of unused memory need not look at it over and over."""
    gc.freeze()


def pytest_collection_modifyitems(items):
    """What draws a page is known by what it asks for; other markers stand where the tests are.

    Files with many long tests begin: one that came last would leave all but one process without work.
    """
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker("browser")
    long = Counter(
        _together(item.path) for item in items if _LONG & {one.name for one in item.iter_markers()}
    )
    items.sort(key=lambda item: -long[_together(item.path)])
