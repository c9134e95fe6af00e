"""Exact functional perturbation: a secret function that answers queries with one consistent noise path.

A `ServedFunction` needs the data to answer, so it stays with the owner: it is never written as a ``.hush``
file, and never downloaded. The models of ``hushsum.models`` give the same guarantee as a file.
"""

from ._secret_function import (
    AnswerStore,
    FreshAnswers,
    GaussianPath,
    MemoryStore,
    SecretFunction,
    ServedFunction,
    SqliteStore,
    StoredAnswer,
    TestSetAnswers,
    answer_once,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
    laplace_rate,
    load_secret_functions,
    path_claim,
    reopen,
    save_secret_functions,
    serve,
    subject_of,
)

__all__ = [
    "AnswerStore", "FreshAnswers", "GaussianPath", "MemoryStore", "SecretFunction", "ServedFunction",
    "SqliteStore", "StoredAnswer", "TestSetAnswers", "answer_once", "density_function",
    "gaussian_process_function", "kernel_svm_functions", "laplace_rate", "load_secret_functions",
    "path_claim", "reopen", "save_secret_functions", "serve", "subject_of",
]  # fmt: skip
