"""Random Fourier features as a method."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.bases.fourier_features import FourierFeatures
from hushsum.kernels.base import Kernel
from hushsum.methods.linear import register_tally
from hushsum.records.bounds import Bounds
from hushsum.tally.tally import Tally

DEFAULT_FEATURES = 4000


def fourier_features(
    kernel: Kernel,
    *,
    features: int = DEFAULT_FEATURES,
    seed: int = 0,
    orthogonal: bool = True,
    bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of random Fourier features, to be filled by ``add`` and made public by ``release``.

    The way to the Gaussian kernel beyond four columns. Its error falls as 1/√features, down to the noise of
    the claim; with δ or ρ that noise does not grow with features, so take as many as time allows. A release
    is small: 8 bytes a feature. In one to four columns, grids are more accurate.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, Laplacian or Matérn.
    features : int
        Pairs of a cosine and a sine. They are a capacity: a pure-ε release publishes the part of them that
        suits it.
    seed : int
        Public seed of the frequencies. Tallies that shall merge need the same one.
    orthogonal : bool
        Orthogonal frequencies within blocks, which are never worse at a lone record, and better near it. No
        effect on the Laplacian kernel and on single columns.
    bounds : list of (low, high), or one (low, high) for all columns, optional
        Declared, never read off the data. Records are clipped to it. Needed where columns have an offset of
        many bandwidths.
    columns : list of str, optional
        What the columns are called, in their order. It becomes part of the fingerprint and of the released
        file, and frames are read by these names.
    max_per_unit : int, optional
        Protect persons instead of records, each with at most this many records.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.fourier_features(hs.GaussianKernel(dim=2, bandwidth=1.0), features=500, seed=7)
    >>> f = tally.add([[0.0, 0.0], [0.1, 0.0]] * 500).release(epsilon=1.0, delta=1e-6)
    >>> bool(0.9 < f([[0.0, 0.0]])[0] < 1.1)
    True

    Notes
    -----
    Rahimi and Recht, NIPS 2007; Yu et al., NIPS 2016; with integer features and exact integer noise.
    """
    box = Bounds.of(bounds, getattr(kernel, "dim", 1))
    names = None if columns is None else tuple(columns)
    basis = FourierFeatures(kernel, features, seed, orthogonal, box, names)
    return Tally(basis, max_per_unit=max_per_unit)


register_tally(
    "fourier_features", fourier_features, paper="Rahimi and Recht 2007", kernels=("gaussian", "laplacian")
)
