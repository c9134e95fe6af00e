"""Exact functional perturbation: a secret function that answers queries with one consistent noise path.

A `ServedFunction` needs the data to answer, so it stays with the owner: it is never written as a ``.hush``
file, and never downloaded. The models of ``hushsum.models`` give the same guarantee as a file.
"""

from hushsum.served.answer_store import AnswerStore, MemoryStore, RollbackGuard, SqliteStore
from hushsum.served.function import ServedFunction, path_claim, reopen, serve
from hushsum.served.output_perturbation import FreshAnswers, TestSetAnswers, answer_once
from hushsum.served.secret_file import load_secret_functions, save_secret_functions
from hushsum.served.secret_functions import (
    SecretFunction,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
)

__all__ = [
    "AnswerStore",
    "FreshAnswers",
    "MemoryStore",
    "RollbackGuard",
    "SecretFunction",
    "ServedFunction",
    "SqliteStore",
    "TestSetAnswers",
    "answer_once",
    "density_function",
    "gaussian_process_function",
    "kernel_svm_functions",
    "load_secret_functions",
    "path_claim",
    "reopen",
    "save_secret_functions",
    "serve",
]
