"""What the service remembers: accounts, tokens, datasets, jobs, functions, and who did what."""

from hushsum.service.store.accounts import Account, Accounts, Token
from hushsum.service.store.answer_counts import ServedAnswers
from hushsum.service.store.database import Actor, LogLine, Store
from hushsum.service.store.datasets import Dataset, Datasets, Quota, StoredTally, Upload
from hushsum.service.store.functions import Function, Functions
from hushsum.service.store.identities import Identities, Link
from hushsum.service.store.job_queue import Job, JobQueue
from hushsum.service.store.log_reader import LogFilter, LogReader, NamedLine
from hushsum.service.store.shared_links import Share, SharedFunction, Shares

__all__ = [
    "Account",
    "Accounts",
    "Actor",
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
    "ServedAnswers",
    "Share",
    "SharedFunction",
    "Shares",
    "Store",
    "StoredTally",
    "Token",
    "Upload",
]
