"""The service's database: accounts, tokens, datasets, jobs, functions, and the audit log."""

from hushsum.service.store.accounts import Account, Accounts, Identities, Identity, IssuedToken, Token
from hushsum.service.store.database import LogEntry, Store
from hushsum.service.store.datasets import Dataset, Datasets, Quota, StoredTally, Upload
from hushsum.service.store.functions import AnswerGuard, Function, Functions, Share, SharedFunction, Shares
from hushsum.service.store.job_queue import Job, JobQueue
from hushsum.service.store.rows import Actor

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
