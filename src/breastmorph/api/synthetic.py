"""What to try BreastMorph with: a synthetic model, and synthetic scans with known truth."""

from __future__ import annotations

from pathlib import Path

from breastmorph.foundation.checks import AnyPath, check_int, check_path
from breastmorph.model.shape_model import ShapeModel


def demo_model() -> ShapeModel:
    """The synthetic model that comes with the package: no person was scanned for it.

    Returns
    -------
    ShapeModel

    Examples
    --------
    >>> bm.demo_model().n_components > 0
    True
    """
    from breastmorph.model.demo_model import demo_model as packaged

    return packaged()


def make_phantoms(
    folder: AnyPath,
    n: int,
    *,
    seed: int = 1,
    one_sided: int = 0,
    jobs: int = 1,
    colour: bool = False,
    visits: int = 1,
) -> Path:
    """Make scans of synthetic adults with known truth, as `breastmorph phantom` does; returns the folder.

    Parameters
    ----------
    folder : path
        New or empty; gets ``scans/``, ``landmarks/`` and ``truth/``.
    n : int
        How many.
    seed : int
        Same seed, same scans.
    one_sided : int
        So many of them, the last ones, lack the right breast.
    jobs : int
        Worker processes; 1 works in this process.
    colour : bool
        Whether the scans have vertex colours; their shapes are the same with and without.
    visits : int
        How often each person is scanned; from the second visit on one breast of half of the people has changed.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    BreastMorphError
        The folder is not empty, or a number makes no sense.

    Examples
    --------
    >>> folder = bm.make_phantoms("phantoms", 1)
    >>> sorted(path.name for path in folder.iterdir())
    ['cohort.csv', 'landmarks', 'scans', 'truth']
    """
    from breastmorph.phantom.scanner import write_cohort

    place = check_path(folder, "the name of the folder")
    write_cohort(
        place,
        check_int(n, "the number of subjects"),
        check_int(seed, "the seed", 0),
        check_int(jobs, "the number of worker processes"),
        check_int(one_sided, "the number of one-sided subjects", 0, n),
        colour=colour,
        visits=check_int(visits, "the number of visits"),
    )
    return place
