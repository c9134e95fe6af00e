"""What the service remembers: accounts, tokens, datasets, jobs, functions, and who did what."""

from hushsum.service.store.accounts import Account, Accounts, Identities, Link, Token
from hushsum.service.store.answer_guards import AnswerGuard
from hushsum.service.store.database import Actor, LogFilter, LogLine, LogReader, NamedLine, Store
from hushsum.service.store.datasets import Dataset, Datasets, Quota, StoredTally, Upload
from hushsum.service.store.functions import Function, Functions, Share, SharedFunction, Shares
from hushsum.service.store.job_queue import Job, JobQueue

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
    "Job",
    "JobQueue",
    "Link",
    "LogFilter",
    "LogLine",
    "LogReader",
    "NamedLine",
    "Quota",
    "Share",
    "SharedFunction",
    "Shares",
    "Store",
    "StoredTally",
    "Token",
    "Upload",
]
