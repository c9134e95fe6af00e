"""The service's database: accounts, tokens, datasets, jobs, functions, and the audit log."""

from .accounts import Accounts, Identities
from .database import FOLDER_FILE, LogEntry, Store, agreements
from .datasets import Datasets, Quota
from .functions import AnswerGuard, Functions, Shares
from .job_queue import MOST_ATTEMPTS, JobQueue
from .rows import Actor
from .schema import (
    REVISION,
    VERSION_TABLE,
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
    StoredFunction,
    StoredTally,
    Token,
    Upload,
    later,
    metadata,
    now,
)

__all__ = [
    "FOLDER_FILE", "MOST_ATTEMPTS", "REVISION", "VERSION_TABLE", "Account", "Accounts", "Actor",
    "AnswerGuard", "Dataset", "Datasets", "Function", "Functions", "Identities", "Identity", "IssuedToken",
    "Job", "JobQueue", "JobState", "ListedUpload", "LogEntry", "Quota", "Share", "SharedFunction", "Shares",
    "Store", "StoredFunction", "StoredTally", "Token", "Upload", "agreements", "later", "metadata", "now",
]  # fmt: skip
