"""Building a model: which subjects, which points, principal components."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from breastmorph import __version__
from breastmorph.cohort import Cohort
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.checks import check_float, check_int
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.language import Plural
from breastmorph.foundation.machine import in_one_thread
from breastmorph.foundation.text import name_of
from breastmorph.mask import breast_regions
from breastmorph.mesh.geometry import vertex_areas, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.procrustes import CommonFrame, ProcrustesParameters, common_frame, mirrored
from breastmorph.model.shape_model import ShapeModel, Training
from breastmorph.scan.scan import SIDES, Landmarks
from breastmorph.template import template_hash

_TRUTH = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_LONGEST = 2000  # characters
_REMEDY = 'Write for example "bmi > 25 and not operated"'
_OTHERS = (  # pattern, how it is written elsewhere, how it is written here
    (r"\bAND\b", "AND", "and"),
    (r"\bOR\b", "OR", "or"),
    (r"\bNOT\b", "NOT", "not"),
    (r"&", "&", "and"),
    (r"\|", "|", "or"),
    (r"<>", "<>", "!="),
    (r"!(?!=)", "!", "not"),
    (r"(?<![<>=!])=(?!=)", "=", "=="),
)

Row = Mapping[str, str]


def as_number(text: str) -> float:
    """A cell as a number, yes and no as 1 and 0; NaN where it is neither."""
    word = text.strip()
    try:
        value = float(word)
    except ValueError:
        return _TRUTH.get(word.lower(), math.nan)
    return value if math.isfinite(value) else math.nan


def chosen_rows(table: Sequence[Row], expression: str) -> Bools:
    """Which rows of a table fulfil an expression, (k,).

    Parameters
    ----------
    table : sequence of mappings from column to text
    expression : str
        A cell that is empty fulfils no comparison, and a subject without it is not chosen by one (nor by its
        ``not``): nothing is assumed about what is not known.

    Raises
    ------
    BreastMorphError
        The expression cannot be understood, names a column that the table does not have, or compares text with a
        number.
    """
    try:
        if len(expression) > _LONGEST:
            raise ValueError(f"more than {_LONGEST} characters")
        tree = ast.parse(name_of(expression.strip()), mode="eval").body
        return np.array([_truth(tree, row) is True for row in _complete(table)], dtype=bool)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, BreastMorphError):
            raise
        raise _misunderstood(expression, _REMEDY + _other_language(expression)) from error


def _complete(table: Sequence[Row]) -> list[Row]:
    """Rows with the same columns each, named as they can be written: BMI (kg/m2) is bmi_kg_m2."""
    columns = list(dict.fromkeys(name for row in table for name in row))
    if not columns:
        raise BreastMorphError("there is no table to choose subjects by", "Give it", code="no-table")
    written = {name: re.sub(r"\W+", "_", name).strip("_").lower() for name in columns}
    return [{written[name]: (row.get(name) or "").strip() for name in columns} for row in table]


def _misunderstood(part: str | ast.AST, remedy: str = _REMEDY) -> BreastMorphError:
    text = part if isinstance(part, str) else ast.unparse(part)
    return BreastMorphError("the condition {text!r} is not understood", remedy, code="condition", text=text)


def _other_language(expression: str) -> str:
    """What is written otherwise here than in SQL or C, as the end of a remedy."""
    found = [
        f"{ours} instead of {theirs}" for pattern, theirs, ours in _OTHERS if re.search(pattern, expression)
    ]
    return f"; here it is {', '.join(found)}" if found else ""


def _truth(node: ast.expr, row: Row) -> bool | None:
    """True, False, or None where the table has no value."""
    if isinstance(node, ast.BoolOp):
        parts = [_truth(value, row) for value in node.values]
        decisive = isinstance(node.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand, row)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        results = [
            _compared(left, op, right, row)
            for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True)
        ]
        return False if False in results else None if None in results else True
    if isinstance(node, ast.Name):
        value = _value(node, row)
        if value == "":
            return None
        found = as_number(str(value))
        if math.isnan(found):
            raise BreastMorphError(
                "column {id!r} holds text ({value!r}), not yes or no",
                "Compare it with a text: {id} == {value!r}",
                code="condition",
                id=node.id,
                value=value,
            )
        return found != 0.0
    raise _misunderstood(node)


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, row: Row) -> bool | None:
    first = _value(left, row)
    if isinstance(op, (ast.In, ast.NotIn)):
        if not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            raise _misunderstood(right)
        found = [_pair(first, ast.Eq(), _value(part, row), left) for part in right.elts]
        if True in found:
            return isinstance(op, ast.In)
        return None if None in found else isinstance(op, ast.NotIn)
    if type(op) not in _COMPARE:
        raise _misunderstood(ast.Compare(left, [op], [right]))
    second = _value(right, row)
    if any(isinstance(side, ast.Constant) and side.value == "" for side in (left, right)):
        return _COMPARE[type(op)](str(first), str(second))  # asked whether a cell is empty
    return _pair(first, op, second, left if isinstance(left, ast.Name) else right)


def _pair(first: float | str, op: ast.cmpop, second: float | str, column: ast.expr) -> bool | None:
    """Compare two values: as numbers where one is a number, else as texts, in which case does not count."""
    if "" in (first, second):
        return None
    compare = _COMPARE[type(op)]
    numbers = [value if isinstance(value, float) else as_number(value) for value in (first, second)]
    if not any(math.isnan(found) for found in numbers):
        return compare(*numbers)
    if float in (type(first), type(second)):
        text = first if isinstance(first, str) else second
        raise BreastMorphError(
            "column {unparse!r} holds text ({text!r}) where a number is needed",
            "Compare it with a text in quotes",
            code="condition",
            unparse=ast.unparse(column),
            text=text,
        )
    return compare(str(first).lower(), str(second).lower())


def _value(node: ast.expr, row: Row) -> float | str:
    if isinstance(node, ast.Name):
        name = node.id.lower()
        if name not in row:
            if name in _TRUTH:  # operated == yes
                return name
            raise BreastMorphError(
                "the table has no column {id!r}",
                "Its columns are {row}",
                code="condition",
                id=node.id,
                row=", ".join(row),
            )
        return row[name]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, row)
        if isinstance(value, float):
            return -value
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            return "yes" if node.value else "no"
        if isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node.value, str):
            return node.value
    raise _misunderstood(node)


# The deviations (rows, b, 3) of all rows of a data matrix at b vertices.
Deviations = Callable[[Ints], Floats]

_BLOCK_BYTES = 128 * 1024**2  # of deviations at a time
_NOTHING = 1e-10  # of the largest variance: rounding, not shape
_MANY = 400  # rows above which only the wanted eigenvectors are computed


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components.

    Attributes
    ----------
    basis : (3n, q) float32
        Orthonormal columns.
    variances : (q,) float
        Falling.
    scores : tuple of (rows, q) float
        Coefficients of the rows of every group.
    group : (q,) int
        The group that every component belongs to.
    total : float
        Variance of all components, also of those left away.
    """

    basis: NDArray[np.float32]
    variances: Floats
    scores: tuple[Floats, ...]
    group: Ints
    total: float


def principal_components(
    groups: Sequence[tuple[int, Deviations]],
    vertices: Ints,
    divisor: float,
    components: int | None = None,
    variance: float | None = None,
) -> Components:
    """Principal components of data that come in mutually orthogonal groups of rows.

    Parameters
    ----------
    groups : sequence of (number of rows, deviations)
        Usually one. Groups whose rows are orthogonal to each other (as symmetric and antisymmetric parts are)
        have components of their own.
    vertices : (n,) int
        The vertices that the components describe.
    divisor : float
        Of the sums of squares; k - 1 for k subjects.
    components : int, optional
        At most so many.
    variance : float, optional
        As many as hold this share of the total variance.
    """
    if variance is not None:
        check_float(variance, "the share of the variance", 0.0, 1.0)
    if components is not None:
        check_int(components, "the number of components")
    groups = [(rows, _read_once(rows, deviations, vertices)) for rows, deviations in groups]
    grams = [_gram(rows, deviations, vertices) for rows, deviations in groups]
    total = float(sum(np.trace(gram) for gram in grams))
    if total <= 0.0:
        raise BreastMorphError("all shapes are the same", "A model needs shapes that differ")
    found = [_eigen(gram, None if variance is not None else components) for gram in grams]
    squares = np.concatenate([values for values, _ in found])
    group = np.repeat(np.arange(len(found)), [len(values) for values, _ in found])
    within = np.concatenate([np.arange(len(values)) for values, _ in found])
    order = np.argsort(-squares, kind="stable")
    order = order[squares[order] > _NOTHING * squares.max()]
    if variance is not None:
        share = np.cumsum(squares[order]) / total
        order = order[: int(np.searchsorted(share, variance - 1e-9)) + 1]
    if components is not None:
        order = order[:components]
    lengths = np.sqrt(squares[order])
    scores, basis = [], np.zeros((3 * len(vertices), len(order)), dtype=np.float32)
    for g, ((rows, deviations), (_, vectors)) in enumerate(zip(groups, found, strict=True)):
        mine = np.flatnonzero(group[order] == g)
        chosen = vectors[:, within[order[mine]]]
        score = np.zeros((rows, len(order)))
        score[:, mine] = chosen * lengths[mine]
        scores.append(score)
        weights = chosen / lengths[mine]
        columns = slice(None) if len(groups) == 1 else mine
        for start, ids in _blocks(rows, vertices):
            basis[3 * start : 3 * (start + len(ids)), columns] = _flat(deviations(ids)).T @ weights
    return Components(basis, squares[order] / divisor, tuple(scores), group[order], total / divisor)


def _read_once(rows: int, deviations: Deviations, vertices: Ints) -> Deviations:
    """The deviations kept in memory where they are one block; they are needed twice."""
    if len(_blocks(rows, vertices)) > 1:
        return deviations
    kept = deviations(vertices)
    return lambda ids: kept


def _gram(rows: int, deviations: Deviations, vertices: Ints) -> Floats:
    gram = np.zeros((rows, rows))
    for _, ids in _blocks(rows, vertices):
        flat = _flat(deviations(ids))
        gram += flat @ flat.T
    return gram


def _eigen(gram: Floats, components: int | None) -> tuple[Floats, Floats]:
    """Eigenvalues, falling, and eigenvectors as columns."""
    from scipy.linalg import eigh

    last = len(gram) - 1
    few = None
    if components is not None and last > _MANY and components < last:
        few = (last - components + 1, last)
    values, vectors = eigh(gram, subset_by_index=few)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _blocks(rows: int, vertices: Ints) -> list[tuple[int, Ints]]:
    """Starts and vertices of blocks."""
    size = max(_BLOCK_BYTES // (24 * rows), 64)
    return [(start, vertices[start : start + size]) for start in range(0, len(vertices), size)]


def _flat(deviations: Floats) -> Floats:
    return deviations.reshape(len(deviations), -1)


_FEWEST = 2  # subjects
_ROUNDING = 1e-6  # of a shape's size: differences that 32-bit floats make
_BREAST = 60.0  # mm around the nipple that decide a component's sign


@dataclass(frozen=True)
class BuildParameters:
    """What kind of model to build.

    Attributes
    ----------
    components : int, optional
        At most so many; all when neither this nor ``variance`` is given.
    variance : float, optional
        As many components as hold this share (0 to 1) of the variance.
    symmetric : bool
        Every subject counts with its mirror image: a symmetric mean, symmetric and antisymmetric modes.
    asymmetry : bool
        A model of the difference from symmetric: every subject minus its own symmetrisation, about the mean.
    part : {"left", "right"}, optional
        Only the vertices of one breast on the mean shape, in the frame of the whole torso; see
        :func:`breastmorph.mask.breast_regions`.
    keep_scores : bool
        Keep the subjects' coefficients, scales and numbers of the table; off because they describe people.
    with_absent : bool
        Also take subjects with an absent side (after a mastectomy).
    procrustes : ProcrustesParameters
    """

    components: int | None = None
    variance: float | None = None
    symmetric: bool = False
    asymmetry: bool = False
    part: Literal["left", "right"] | None = None
    keep_scores: bool = False
    with_absent: bool = False
    procrustes: ProcrustesParameters = field(default_factory=ProcrustesParameters)


@in_one_thread
def build_model(
    cohort: Cohort, parameters: BuildParameters | None = None, notes: Mapping[str, Any] | None = None
) -> ShapeModel:
    """Build a shape model.

    Parameters
    ----------
    cohort : Cohort
        Read one subject or one block of vertices at a time.
    parameters : BuildParameters, optional
    notes : mapping, optional
        Further entries of ``info``; plain JSON values.

    Returns
    -------
    ShapeModel
        Upright like the template, centred, the mean at the mean centroid size of the subjects. ``info`` has how
        many subjects are in it, what the alignment removed and the total variance; never who they are.
    """
    p = parameters or BuildParameters()
    used = usable(cohort, with_absent=p.with_absent)
    left_out = len(cohort) - len(used)
    cohort = used
    if len(cohort) < _FEWEST:
        raise BreastMorphError(
            Plural("a model needs more than {n} subject", "a model needs more than {n} subjects"),
            "Choose at least {fewest}; those with an absent breast do not count ({left_out} here)"
            if left_out
            else "Choose at least {fewest}",
            n=len(cohort),
            fewest=_FEWEST,
            left_out=left_out,
        )
    template = cohort.template
    if p.symmetric and p.asymmetry:
        raise BreastMorphError("a model is either symmetric or one of asymmetry", "Choose one of the two")
    mirror = _mirror(cohort) if p.symmetric or p.asymmetry else None
    frame = common_frame(cohort.packed, cohort.rows, template.mesh.vertices, p.procrustes, mirror, cohort.ids)
    aligned = AlignedCohort(cohort, frame)
    mean = frame.mean
    if p.asymmetry and mirror is not None:
        mean = mean + aligned.mean_asymmetry(mirror)
    model = ShapeModel(
        mean,
        np.zeros((mean.size, 0), np.float32),
        np.zeros(0),
        template.mesh.faces,
        template.landmark_ids,
        mirror=template.mirror,
    )
    vertices = np.arange(len(mean))
    if p.part is not None:
        vertices = part_vertices(model.mean_mesh, model.landmark_ids, p.part)
        model = model.marginal(vertices)
    found, scores = _components(aligned, mean, vertices, mirror, p)
    if found.total < len(vertices) * (_ROUNDING * frame.mean.std()) ** 2:
        raise BreastMorphError(
            "the subjects show no asymmetry" if p.asymmetry else "the subjects show no differences",
            "A model needs shapes that differ",
        )
    signs = _signs(model, found.basis)
    training = None
    if p.keep_scores:
        training = Training(scores * signs, frame.scales, _numbers(cohort.table))
    lost = max(found.total - float(found.variances.sum()), 0.0)
    return replace(
        model,
        basis=found.basis * signs.astype(np.float32),
        variances=found.variances,
        noise_variance=lost / len(found.basis) if lost > 1e-9 * found.total else 0.0,
        training=training,
        info={**_info(cohort, left_out, frame, found, p), **(notes or {})},
    )


def built_with(model: ShapeModel) -> BuildParameters:
    """The parameters of a model, as far as it states them: its frame, sides and subjects, not how much of it was kept.

    What makes no sense in a file is passed over.
    """

    stated = model.stated_parameters
    procrustes = stated.get("procrustes")
    frame: dict[str, Any] = {
        name: value
        for name, value in (procrustes.items() if isinstance(procrustes, Mapping) else ())
        if (name == "tolerance" and isinstance(value, float))
        or (name == "max_iterations" and isinstance(value, int) and value > 0)
    }
    return BuildParameters(
        symmetric=stated.get("symmetric") is True,
        asymmetry=stated.get("asymmetry") is True,
        part=stated["part"] if stated.get("part") in SIDES else None,
        with_absent=stated.get("with_absent") is True,
        procrustes=ProcrustesParameters(with_scale=not model.keeps_size, **frame),
    )


def usable(cohort: Cohort, *, with_absent: bool = False) -> Cohort:
    """The subjects that enter a model: those with both sides, or all."""
    keep = [with_absent or not side for side in cohort.absent]
    return cohort if all(keep) else cohort.chosen(np.array(keep))


@dataclass(frozen=True, eq=False)
class AlignedCohort:
    """A cohort in its common frame, transformed while it is read."""

    cohort: Cohort
    frame: CommonFrame

    def block(self, vertices: Ints) -> Floats:
        """Aligned shapes at some vertices, (k, b, 3)."""
        packed, rows = self.cohort.packed, self.cohort.rows
        first, last = int(vertices[0]), int(vertices[-1])
        if np.array_equal(vertices, np.arange(first, last + 1)):
            raw = packed[rows, first : last + 1].astype(np.float64)  # three times quicker than by numbers
        else:
            raw = packed[np.ix_(rows, vertices)].astype(np.float64)
        turns = np.stack([t.scale * t.rotation.T for t in self.frame.transforms])
        offsets = np.stack([t.translation for t in self.frame.transforms])
        aligned: Floats = raw @ turns
        aligned += offsets[:, None, :]
        return aligned

    def halves(self, vertices: Ints, mirror: Ints) -> tuple[Floats, Floats]:
        """Symmetric and antisymmetric parts of the aligned shapes at some vertices, (k, b, 3) each."""
        here, there = self.block(vertices), self.block(mirror[vertices])
        there *= MIRROR
        return (here + there) / 2.0, (here - there) / 2.0

    def mean_asymmetry(self, mirror: Ints) -> Floats:
        """The asymmetry that the subjects have in common, (n, 3)."""
        total = np.zeros_like(self.frame.mean)
        for shape, transform in zip(self.cohort.shapes(), self.frame.transforms, strict=True):
            total += transform.apply(shape)
        total /= len(self.cohort)
        return (total - mirrored(total, mirror)) / 2.0


def _components(
    aligned: AlignedCohort, mean: Floats, vertices: Ints, mirror: Ints | None, p: BuildParameters
) -> tuple[Components, Floats]:
    """Components, and the coefficients of the subjects, (k, q)."""
    k = len(aligned.cohort)

    def deviations(ids: Ints) -> Floats:
        if mirror is None:
            return aligned.block(ids) - mean[ids]
        return aligned.halves(ids, mirror)[1] - (mean - aligned.frame.mean)[ids]

    if mirror is None or p.asymmetry:
        found = principal_components([(k, deviations)], vertices, k - 1, p.components, p.variance)
        return found, found.scores[0]

    # The subjects and their mirror images, s + a and s - a, have the components of the rows sqrt(2) s and
    # sqrt(2) a, which are orthogonal to each other on a region that is its own mirror image.
    root = math.sqrt(2.0)

    groups: Sequence[tuple[int, Deviations]] = [
        (k, lambda ids: root * (aligned.halves(ids, mirror)[0] - mean[ids])),
        (k, lambda ids: root * aligned.halves(ids, mirror)[1]),
    ]
    if len(vertices) < len(mean):
        halves = groups
        groups = [(2 * k, lambda ids: np.concatenate([deviations(ids) for _, deviations in halves]))]
    found = principal_components(groups, vertices, 2 * k - 1, p.components, p.variance)
    stacked = np.concatenate(found.scores)
    return found, (stacked[:k] + stacked[k:]) / root


def part_vertices(mesh: TriangleMesh, landmark_ids: Mapping[str, int], side: str) -> Ints:
    """Vertices of one breast on a mean shape: those of the faces inside its region."""
    inside = breast_regions(mesh, Landmarks.at_vertices(landmark_ids, mesh.vertices))[side]
    return np.unique(mesh.faces[inside[mesh.faces].all(axis=1)])


def _signs(model: ShapeModel, basis: NDArray[np.float32]) -> Floats:
    """Factors of the components (q,) so that + makes the breasts fuller, the left one counting more."""
    outwards = vertex_normals(model.mean, model.faces) * vertex_areas(model.mean, model.faces)[:, None]
    weights = np.zeros(model.n_vertices)
    for name, weight in (("nipple_left", 1.0), ("nipple_right", 0.6)):
        if name in model.landmark_ids:
            away = np.linalg.norm(model.mean - model.mean[model.landmark_ids[name]], axis=1)
            weights += weight * np.exp(-((away / _BREAST) ** 2))
    fuller = (outwards * weights[:, None]).ravel()
    rises = fuller.astype(np.float32) @ basis
    largest = basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])]
    decides = np.abs(rises) > 1e-6 * np.linalg.norm(fuller)
    return np.where(np.where(decides, rises, largest) < 0.0, -1.0, 1.0)


def _mirror(cohort: Cohort) -> Ints:
    mirror = cohort.template.mirror
    if mirror is None:
        raise BreastMorphError(
            "the template does not say which vertices are mirror images of each other",
            "Register with a symmetric template (`breastmorph template` makes one)",
        )
    if not np.array_equal(mirror[mirror], np.arange(cohort.template.mesh.n_vertices)):
        raise BreastMorphError("the template's mirror permutation is damaged", "Make the template again")
    return mirror


def _numbers(table: Sequence[Mapping[str, str]]) -> dict[str, Floats]:
    """Columns of the table that hold numbers, or yes and no as 1 and 0; NaN where unknown."""
    columns: dict[str, Floats] = {}
    for name in dict.fromkeys(name for row in table for name in row if name != "id"):
        values = np.array([as_number(row.get(name) or "") for row in table])
        if np.isfinite(values).any():
            columns[name] = values
    return columns


def _info(
    cohort: Cohort, left_out: int, frame: CommonFrame, found: Components, p: BuildParameters
) -> dict[str, Any]:
    info: dict[str, Any] = {
        "software": f"BreastMorph {__version__}",
        "subjects": len(cohort),
        "left_out": {"absent breast": left_out} if left_out else {},
        "template": template_hash(cohort.template),
        "shapes": cohort.fingerprint(),
        "alignment": "similarity" if p.procrustes.with_scale else "rigid",
        "removed": asdict(frame.removed),
        "total_variance": found.total,
        "parameters": asdict(p),
    }
    if p.symmetric and p.part is None:
        info["mode_symmetry"] = ["symmetric" if g == 0 else "antisymmetric" for g in found.group]
    return info
