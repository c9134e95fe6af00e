"""The service's database: accounts, tokens, datasets, jobs, functions, and the audit log."""

from hushsum.service.store.accounts import Accounts, Identities
from hushsum.service.store.database import LogEntry, Store
from hushsum.service.store.datasets import Datasets, Quota
from hushsum.service.store.functions import AnswerGuard, Functions, Shares
from hushsum.service.store.job_queue import JobQueue
from hushsum.service.store.rows import Actor
from hushsum.service.store.schema import (
    Account,
    Dataset,
    Function,
    Identity,
    IssuedToken,
    Job,
    JobState,
    ListedUpload,
    Share,
    SharedFunction,
    StoredTally,
    Token,
    Upload,
)

__all__ = [
    "Account",
    "Accounts",
    "Actor",
    "AnswerGuard",
    "Dataset",
    "Datasets",
    "Function",
    "Functions",
    "Identities",
    "Identity",
    "IssuedToken",
    "Job",
    "JobQueue",
    "JobState",
    "ListedUpload",
    "LogEntry",
    "Quota",
    "Share",
    "SharedFunction",
    "Shares",
    "Store",
    "StoredTally",
    "Token",
    "Upload",
]
