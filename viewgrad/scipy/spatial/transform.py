"""`scipy.spatial.transform` for tensors: rotations represented by matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.spatial.transform  # type: ignore[import-untyped]

from ...numpy.namespace import filled, public_names
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..implicit_diff import root_place
from ..wrap import double_copy, float_copy, numbers

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


PLAIN: Final = scipy.spatial.transform.Rotation
AXES: Final = {"x": 0, "y": 1, "z": 2}


def _values(value: Any) -> Any:
    return np.array(plain_values(numbers(value)))


def _about(axis: str, angle: Any) -> Any:
    """Return the matrices of rotations about a coordinate axis."""
    cosine, sine = np.cos(angle), np.sin(angle)
    zero, one = cosine * 0.0, cosine * 0.0 + 1.0
    place = AXES[axis]
    rows = [[one, zero, zero], [zero, cosine, -sine], [zero, sine, cosine]]
    turned = [[rows[(i - place) % 3][(j - place) % 3] for j in range(3)] for i in range(3)]
    return np.stack([np.stack(row, -1) for row in turned], -2)


class Rotation:
    """A rotation in three dimensions, or a stack of them, differentiable with respect to its parameters.

    Arguments:
        quat: the quaternion, or a stack of them.
        normalize, copy: as in SciPy; both must be true.
        scalar_first: whether the scalar part is first.
    """

    _matrix: Any
    _plain: Any

    def __init__(self, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> None:
        if not normalize or not copy:
            raise lost("Rotation", "normalize=False and copy=False are not supported for tensors with a history")
        found = self.from_quat(quat, scalar_first=scalar_first)
        self._matrix, self._plain = found._matrix, found._plain

    @classmethod
    def _of(cls, matrix: Any, plain: Any = None) -> Rotation:
        """Return the rotation with an orthogonal matrix.

        Arguments:
            matrix: the matrix, or a stack of them.
            plain: SciPy's rotation, which determines the sign of the quaternion; by default that of the matrix.
        """
        made = object.__new__(cls)
        made._matrix = double_copy(matrix)
        if made._matrix.is_complex():
            raise lost("Rotation", "SciPy discards imaginary parts; pass real numbers")
        made._plain = PLAIN.from_matrix(_values(made._matrix)) if plain is None else plain
        return made

    @property
    def single(self) -> bool:
        """True for a single rotation, False for a stack."""
        return bool(self._matrix.ndim == 2)

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self._matrix.shape[0])

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return self._of(self._matrix[index], self._plain[plain_values(index)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up such names before the object has contents
            raise AttributeError(name)
        value = getattr(self._plain, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            given = [each._matrix if isinstance(each, Rotation) else each for each in args]
            args = tuple([each._plain if isinstance(each, Rotation) else plain_values(each) for each in args])
            found = value(*args, **options)
            if np.asarray(found).dtype.kind not in "bi" and carries_history((self._matrix, given, options)):
                raise lost(f"Rotation.{name}", "use its matrices")
            return self._of(found.as_matrix(), found) if isinstance(found, PLAIN) else as_tensors(found)

        return call

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Return the rotation with a given matrix, or with the nearest orthogonal matrix."""
        plain = PLAIN.from_matrix(_values(matrix))
        matrix = double_copy(matrix)
        if np.allclose(plain.as_matrix(), plain_values(matrix), rtol=0, atol=1e-12):
            return cls._of(matrix, plain)
        left, _, right = np.linalg.svd(matrix)
        return cls._of(left @ right, plain)

    @classmethod
    def identity(cls, num: int | None = None) -> Rotation:
        """Return the identity rotation."""
        return cls._of(np.eye(3) if num is None else np.tile(np.eye(3), (num, 1, 1)))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Return the rotation by angles about fixed (lower case) or rotating (upper case) axes."""
        plain = PLAIN.from_euler(seq, _values(angles), degrees)
        angles = double_copy(angles)
        if degrees:
            angles = angles * (np.pi / 180)
        if len(seq) == 1:
            return cls._of(_about(seq.lower(), angles).reshape(plain.as_matrix().shape), plain)
        matrix: Any = None
        for place, axis in enumerate(seq):
            turn = _about(axis.lower(), angles[..., place])
            matrix = turn if matrix is None else matrix @ turn if seq.isupper() else turn @ matrix
        return cls._of(matrix, plain)

    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Return the rotation of a quaternion, whose scalar part is last unless `scalar_first` is set."""
        plain = PLAIN.from_quat(_values(quat), scalar_first=scalar_first)
        quat = double_copy(quat)
        quat = quat / quat.vector_norm(2, -1, True)
        parts = [quat[..., place] for place in range(4)]
        x, y, z, w = (*parts[1:], parts[0]) if scalar_first else parts
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        return cls._of(np.stack([np.stack(row, -1) for row in rows], -2), plain)

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Return the rotation by modified Rodrigues parameters: the axis times the tangent of a quarter of the angle.
        """
        plain = PLAIN.from_mrp(_values(mrp))
        mrp = double_copy(mrp)
        quat = np.concatenate([2.0 * mrp, 1.0 - (mrp * mrp).sum(-1, keepdims=True)], -1)
        return cls._of(cls.from_quat(quat)._matrix, plain)

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Return the rotation by a rotation vector, whose length is the angle."""
        plain = PLAIN.from_rotvec(_values(rotvec), degrees)
        vector = double_copy(rotvec)
        if degrees:
            vector = vector * (np.pi / 180)
        squared = (vector * vector).sum(-1)
        small = squared < 1e-8
        safe = np.where(small, 1.0, squared)
        angle = np.sqrt(safe)
        first = np.where(small, 1 - squared / 6, np.sin(angle) / angle)[..., None, None]
        second = np.where(small, 0.5 - squared / 24, (1 - np.cos(angle)) / safe)[..., None, None]
        x, y, z = (vector[..., place] for place in range(3))
        zero = x * 0.0
        rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
        cross = np.stack([np.stack(row, -1) for row in rows], -2)
        return cls._of(np.eye(3) + first * cross + second * (cross @ cross), plain)

    def as_matrix(self) -> Any:
        """Return the rotation matrices."""
        return self._matrix.clone()

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Return the quaternion, with SciPy's sign."""
        matrix, wanted = self._matrix, self._plain.as_quat(canonical)
        # The largest component is a square root, and the others are divided by it.
        parts = []
        squares = [
            1 + matrix[..., 0, 0] - matrix[..., 1, 1] - matrix[..., 2, 2],
            1 - matrix[..., 0, 0] + matrix[..., 1, 1] - matrix[..., 2, 2],
            1 - matrix[..., 0, 0] - matrix[..., 1, 1] + matrix[..., 2, 2],
            1 + matrix[..., 0, 0] + matrix[..., 1, 1] + matrix[..., 2, 2],
        ]
        products = {
            (0, 1): matrix[..., 0, 1] + matrix[..., 1, 0], (0, 2): matrix[..., 0, 2] + matrix[..., 2, 0],
            (1, 2): matrix[..., 1, 2] + matrix[..., 2, 1], (0, 3): matrix[..., 2, 1] - matrix[..., 1, 2],
            (1, 3): matrix[..., 0, 2] - matrix[..., 2, 0], (2, 3): matrix[..., 1, 0] - matrix[..., 0, 1],
        }  # fmt: skip
        largest = np.abs(wanted).argmax(-1)
        for place in range(4):
            found: Any = 0.0
            for big in range(4):
                chosen = largest == big
                if not np.any(chosen):
                    continue
                root = np.sqrt(np.where(chosen, squares[big], 1.0))
                top = squares[big] if place == big else products[min(place, big), max(place, big)]
                found = np.where(chosen, top / (2 * root), found)
            parts.append(found)
        quat = np.stack(parts, -1)
        sign = np.sign((plain_values(quat) * wanted).sum(-1, keepdims=True))
        quat = quat * sign
        return np.concatenate([quat[..., 3:], quat[..., :3]], -1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Return the rotation vector: the axis times the angle."""
        quat = self.as_quat(canonical=True)
        imaginary = quat[..., :3]
        length = imaginary.vector_norm(2, -1, True)
        small = length < 1e-8
        angle = 2 * np.arctan2(length, quat[..., 3:])
        vector = imaginary * np.where(small, 2.0, angle / np.where(small, 1.0, length))
        return vector * (180 / np.pi) if degrees else vector

    def as_mrp(self) -> Any:
        """Return the modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        quat = self.as_quat(canonical=True)
        return quat[..., :3] / (1.0 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False, **options: Any) -> Any:
        """Return the angles about three different axes."""
        wanted = self._plain.as_euler(seq, degrees, **options)
        if not carries_history(self._matrix):
            return as_tensors(wanted)
        if len(set(seq.lower())) != 3:
            raise lost("Rotation.as_euler", "take the angles about three different axes, such as 'xyz'")
        order = seq if seq.isupper() else seq[::-1]
        i, j, k = (AXES[axis] for axis in order.lower())
        sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
        m = self._matrix
        middle = np.arcsin(np.clip(sign * m[..., i, k], -1.0, 1.0))
        first = np.arctan2(-sign * m[..., j, k], m[..., k, k])
        last = np.arctan2(-sign * m[..., i, j], m[..., i, i])
        angles = np.stack([first, middle, last] if seq.isupper() else [last, middle, first], -1)
        angles = angles * (180 / np.pi) if degrees else angles
        if not np.allclose(plain_values(angles), wanted, rtol=0, atol=1e-4):
            raise lost("Rotation.as_euler", "the first and the third axis are parallel (gimbal lock)")
        return angles

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Return the rotated vectors."""
        vectors = double_copy(vectors)
        matrix = self._matrix.mT if inverse else self._matrix
        return (matrix @ vectors[..., None])[..., 0]

    def inv(self) -> Rotation:
        """Return the inverse rotation."""
        return self._of(self._matrix.mT, self._plain.inv())

    def magnitude(self) -> Any:
        """Return the angles of the rotations."""
        return self.as_rotvec().vector_norm(2, -1)

    def __mul__(self, other: Any) -> Rotation:
        other = self._of(other.as_matrix(), other) if isinstance(other, PLAIN) else other
        return self._of(self._matrix @ other._matrix, self._plain * other._plain)

    def __rmul__(self, other: Any) -> Any:
        return self._of(other.as_matrix(), other) * self if isinstance(other, PLAIN) else NotImplemented

    def __pow__(self, n: Any, modulus: None = None) -> Rotation:
        if modulus is not None:
            raise NotImplementedError("modulus not supported")
        plain = self._plain ** plain_values(n)
        return self._of(self.from_rotvec(self.as_rotvec() * n)._matrix, plain)

    def mean(self, weights: Any = None, axis: Any = None) -> Rotation:
        """Return the rotation whose matrix is nearest to those of a stack, by least squares.

        Arguments:
            weights: the weight of each rotation; by default equal.
            axis: the axis of the stack; None or 0.

        Raises:
            DifferentiabilityError: if the nearest rotation is not unique.
        """
        if axis not in (None, 0, -1, (0,), (-1,)):
            raise ValueError(f"axis {axis} is out of bounds for rotation with shape {self._matrix.shape[:-2]}.")
        matrices = self._matrix[None] if self.single else self._matrix
        weights = np.ones(len(matrices)) if weights is None else float_copy(weights)
        if np.any(plain_values(weights) < 0):
            raise ValueError("`weights` must be non-negative.")
        if weights.ndim > 1 or (weights.ndim and weights.shape not in ((1,), matrices.shape[:1])):
            raise ValueError(f"Expected `weights` to be broadcastable to rotation shape, got shape {weights.shape}.")
        return _nearest((np.broadcast_to(weights, matrices.shape[:1])[:, None, None] * matrices).mean(0))

    @classmethod
    def align_vectors(
        cls, a: Any, b: Any, weights: Any = None, return_sensitivity: bool = False
    ) -> tuple[Any, ...]:
        """Return the rotation of vectors `b` that brings them nearest to vectors `a`, by weighted least squares.

        Arguments:
            a, b: vectors of shape (3,) or (n, 3).
            weights: the weight of each pair; one may be infinite.
            return_sensitivity: whether to return the covariance of the rotation for errors of unit size, too.

        Returns:
            The rotation, the root of the weighted sum of squared distances, and the sensitivity on request.

        Raises:
            DifferentiabilityError: if the rotation is not unique.

        Source: W. Kabsch, "A solution for the best rotation to relate two sets of vectors" (1976); F. L. Markley,
        "Attitude determination using vector observations and the singular value decomposition" (1988).
        """
        a, b = float_copy(a), float_copy(b)
        weights = None if weights is None else float_copy(weights)
        plain = PLAIN.align_vectors(*plain_values((a, b, weights)), return_sensitivity)
        if not carries_history((a, b, weights)):
            return cls._of(plain[0].as_matrix(), plain[0]), *as_tensors(plain[1:])
        a, b = np.atleast_2d(a), np.atleast_2d(b)
        weights = np.ones(len(a)) if weights is None else weights
        fixed = np.flatnonzero(np.isinf(plain_values(weights))) if len(a) > 1 else np.zeros(1, int)
        if fixed.size:
            others = np.delete(np.arange(len(a)), fixed)
            found = _about_fixed(a[fixed[0]], b[fixed[0]], a[others], b[others], weights[others])
            counted = np.flatnonzero(np.isfinite(plain_values(weights)))
            a, b, weights = a[counted], b[counted], weights[counted]
        else:
            found = _nearest((weights[:, None] * a).mT @ b)
        distance: Any = as_tensors(np.float64(plain[1]))
        if len(a):
            computed: Any = np.linalg.norm((a - found.apply(b)) * np.sqrt(weights)[:, None])
            distance = computed + (distance - computed.detach())
        results = [found, distance]
        if return_sensitivity:
            moments = (weights[:, None] * a).mT @ b
            # Symmetric functions of the singular values, with the sign of the determinant.
            total = (found._matrix * moments).sum()
            pairs = (total**2 - (moments**2).sum()) / 2.0
            product = total * pairs - np.linalg.det(moments)
            results.append(weights.mean() / product * (pairs * np.eye(3) + moments @ moments.mT))
        return tuple(results)

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Concatenate rotations."""
        matrices = [each._matrix[None] if each.single else each._matrix for each in rotations]
        return cls._of(np.concatenate(matrices), PLAIN.concatenate([each._plain for each in rotations]))

    @classmethod
    def random(cls, num: int | None = None, rng: Any = None, **options: Any) -> Rotation:
        """Draw random rotations."""
        plain = PLAIN.random(num, rng, **options)
        return cls._of(plain.as_matrix(), plain)


def _nearest(matrix: Any) -> Rotation:
    """Return the rotation nearest to a matrix, whose quaternion is an eigenvector.

    Source: B. K. P. Horn, "Closed-form solution of absolute orientation using unit quaternions" (1987).
    """
    m, trace = matrix, matrix.trace()
    side = np.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])[:, None]
    upper = np.concatenate([m + m.mT - trace * np.eye(3), side], 1)
    form: Any = np.concatenate([upper, np.concatenate([side.mT, trace.reshape(1, 1)], 1)])
    values, vectors = np.linalg.eigh(plain_values(form.detach()))
    if carries_history(form):
        place = root_place(
            lambda x: np.concatenate([form @ x[:4] - x[4] * x[:4], 0.5 * (1.0 - x[:4] @ x[:4]).reshape(1)]),
            np.append(vectors[:, -1], values[-1]),
        )[:4]
    else:
        place = as_tensors(vectors[:, -1].copy())
    return Rotation.from_quat(place)


def _about_fixed(a: Any, b: Any, others: Any, turned: Any, weights: Any) -> Rotation:
    """Return the rotation that brings one vector exactly to another, and further vectors as near as possible."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    half = 1.0 + a @ b
    if float(plain_values(half)) < 1e-12:
        raise lost("Rotation.align_vectors", "the vectors are opposite, so that the rotation is not unique")
    first = Rotation.from_quat(np.concatenate([np.cross(b, a), half.reshape(1)]))
    if not len(others):
        return first
    moved = first.apply(turned)
    sine = (weights * (np.cross(moved, others) @ a)).sum()
    cosine = (weights * ((moved * others).sum(-1) - (moved @ a) * (others @ a))).sum()
    return Rotation.from_rotvec(np.arctan2(sine, cosine) * a) * first


class Slerp:
    """Spherical linear interpolation of rotations; gradients flow to the rotations and the evaluation times.

    Arguments:
        times: the increasing times of the rotations.
        rotations: a stack of rotations.
    """

    def __init__(self, times: Any, rotations: Rotation) -> None:
        if carries_history(times):
            raise lost("scipy.spatial.transform.Slerp", "no gradient flows to the times of the rotations")
        self.times = np.asarray(plain_values(as_argument(times)), float)
        if rotations.single or len(rotations) != self.times.size:
            raise ValueError("`rotations` must be a sequence of as many rotations as there are times.")
        if (np.diff(self.times) <= 0).any():
            raise ValueError("Times must be in strictly increasing order.")
        self.rotations = rotations
        self.rotvecs = (rotations[:-1].inv() * rotations[1:]).as_rotvec()

    def __call__(self, times: Any) -> Rotation:
        places = float_copy(times)
        plain = np.asarray(plain_values(places))
        if plain.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        if (plain < self.times[0]).any() or (plain > self.times[-1]).any():
            raise ValueError("Interpolation times must be within the range of the times of the rotations.")
        before = np.clip(np.searchsorted(self.times, plain) - 1, 0, len(self.times) - 2)
        share = (places - self.times[before]) / np.diff(self.times)[before]
        return self.rotations[before] * Rotation.from_rotvec(self.rotvecs[before] * share[..., None])


MADE: dict[str, Any] = {"Rotation": Rotation, "Slerp": Slerp}
globals().update(filled(scipy.spatial.transform, MADE, frozenset(), {}))
__all__ = public_names(scipy.spatial.transform)
