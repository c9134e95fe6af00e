"""Methods that turn records into a released function, their registry, and private choice of parameters."""

from ._adaptive_grid import ADAPTIVE_GRID, adaptive_grid
from ._comparison import comparison_option, option_of_reading
from ._feature_functions import (
    GAP_REACHED,
    GAP_SHARE,
    TARGET_BITS,
    Machines,
    MatrixGram,
    allowed_gap,
    fit_machines,
    gap_missed,
    perturbed_machines,
    perturbed_posterior,
    smoother,
    solve_hinge,
    svm_sensitivity,
)
from ._fourier_features import FOURIER_FEATURES, TYPICAL_CHANCE, fourier_features
from ._graphs import count_graph, count_rows
from ._grid import GRID, TYPICAL_HEAP, grid
from ._hash_rows import (
    BOUND,
    DEFAULT_WIDTH,
    RACE,
    bounded_row_variance,
    estimated_row_variance,
    race,
    row_variances,
    row_width,
)
from ._landmarks import LANDMARKS, LENGTH, MOST_COLUMNS, landmarks, predicted_error
from ._linear_models import (
    BITS,
    OBJECTIVE_PERTURBATION,
    POSTERIOR_SAMPLE,
    PUBLISHED_GAUSSIAN,
    NoisyMoments,
    SketchedMoments,
    check_published,
    descend,
    fit_adaops,
    fit_as_published,
    fit_classifier,
    fit_logistic,
    fit_ops,
    fit_regression,
    fit_squares,
    fit_surrogate,
    moments,
    perturbation,
    regression_loss,
    regression_records,
    rows_for_moments,
    solve_adaptive,
    solve_plain,
    surrogate_tally,
)
from ._marginals import (
    DEFAULT_CELLS,
    FINENESS,
    SCORE_SENSITIVITY,
    all_pairs,
    chosen_tree,
    dependence_of_counts,
    exact_counts,
    marginals,
    only_chosen,
    positions_of,
    tree_marginals,
)
from ._method import (
    DEFAULT_DELTA,
    PUBLIC_POINTS,
    BoxKeywords,
    DeclaredBox,
    Method,
    OneCallKeywords,
    OneCallRelease,
    all_methods,
    boxed_tally,
    default_kernel,
    default_method,
    method_named,
    method_names,
    part_of_budget,
    planned_methods,
    register,
    release_counted,
    tally_methods,
)
from ._monomials import MONOMIALS, monomials
from ._prediction import (
    COUNT_SHARES,
    HEADER_BYTES,
    MEAN,
    NORMAL_MEAN_ABSOLUTE,
    SUM,
    Option,
    PredictionRequest,
    likely_densities,
    typical_density,
)
from ._private_choice import VOTE_SENSITIVITY, Choice, choose, choose_kernel, count_votes
from ._quantiles import PrivateBounds, Ranks, private_bounds, private_quantiles, rank_sensitivity

__all__ = [
    "ADAPTIVE_GRID", "BITS", "BOUND", "COUNT_SHARES", "DEFAULT_CELLS", "DEFAULT_DELTA", "DEFAULT_WIDTH",
    "FINENESS", "FOURIER_FEATURES", "GAP_REACHED", "GAP_SHARE", "GRID", "HEADER_BYTES", "LANDMARKS", "LENGTH",
    "MEAN", "MONOMIALS", "MOST_COLUMNS", "NORMAL_MEAN_ABSOLUTE", "OBJECTIVE_PERTURBATION", "POSTERIOR_SAMPLE",
    "PUBLIC_POINTS", "PUBLISHED_GAUSSIAN", "RACE", "SCORE_SENSITIVITY", "SUM", "TARGET_BITS",
    "TYPICAL_CHANCE", "TYPICAL_HEAP", "VOTE_SENSITIVITY", "BoxKeywords", "Choice", "DeclaredBox", "Machines",
    "MatrixGram", "Method", "NoisyMoments", "OneCallKeywords", "OneCallRelease", "Option",
    "PredictionRequest", "PrivateBounds", "Ranks", "SketchedMoments", "adaptive_grid", "all_methods",
    "all_pairs", "allowed_gap", "bounded_row_variance", "boxed_tally", "check_published", "choose",
    "choose_kernel", "chosen_tree", "comparison_option", "count_graph", "count_rows", "count_votes",
    "default_kernel", "default_method", "dependence_of_counts", "descend", "estimated_row_variance",
    "exact_counts", "fit_adaops", "fit_as_published", "fit_classifier", "fit_logistic", "fit_machines",
    "fit_ops", "fit_regression", "fit_squares", "fit_surrogate", "fourier_features", "gap_missed", "grid",
    "landmarks", "likely_densities", "marginals", "method_named", "method_names", "moments", "monomials",
    "only_chosen", "option_of_reading", "part_of_budget", "perturbation", "perturbed_machines",
    "perturbed_posterior", "planned_methods", "positions_of", "predicted_error", "private_bounds",
    "private_quantiles", "race", "rank_sensitivity", "register", "regression_loss", "regression_records",
    "release_counted", "row_variances", "row_width", "rows_for_moments", "smoother", "solve_adaptive",
    "solve_hinge", "solve_plain", "surrogate_tally", "svm_sensitivity", "tally_methods", "tree_marginals",
    "typical_density",
]  # fmt: skip
