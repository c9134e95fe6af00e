"""The budget of one dataset in a ledger, against which releases are debited."""

from __future__ import annotations

from collections.abc import Mapping

from hushsum.ledger.account import Account
from hushsum.ledger.charges import charge_for
from hushsum.ledger.dataset_terms import Charge
from hushsum.ledger.entries import Entry, check_name, check_same, person
from hushsum.ledger.hash_chain import Kind
from hushsum.ledger.ledger_debit import LedgerDebit, Transaction
from hushsum.privacy.claim import Claim


class DatasetBudget:
    """The budget of a dataset in a ledger, or of one of its parts; made by :meth:`Ledger.dataset`.

    A :class:`hushsum.privacy.budget.Budget`: give it to a releasing call as ``budget=``.

    Attributes
    ----------
    ledger_id : str
        The ledger's own name, the same wherever it is moved.
    dataset : str
        The dataset's name in the ledger.
    part : str or None
        The declared part of the data that the releases read.
    """

    def __init__(
        self,
        ledger_id: str,
        dataset: str,
        reading: Transaction,
        writing: Transaction,
        *,
        part: str | None = None,
        to: str | None = None,
        who: str | None = None,
    ) -> None:
        self.ledger_id = ledger_id
        self.dataset = dataset
        self.part = part
        self._to = to
        self._who = who
        self._reading = reading
        self._writing = writing

    def __repr__(self) -> str:
        part = "" if self.part is None else f", part={self.part!r}"
        return f"<DatasetBudget {self.dataset!r}{part}>"

    @property
    def account(self) -> Account:
        """What was spent on the dataset, what is left, and on which terms."""
        with self._reading() as journal:
            return journal.account(self.dataset)

    @property
    def remaining(self) -> Charge:
        """What releases may still spend: of the dataset, or of its part."""
        return self.account.remaining_in(self.part)

    def find(self, idempotency_key: str) -> Entry | None:
        """The release with this key."""
        with self._reading() as journal:
            return journal.entry(idempotency_key)

    def price(self, claim: Claim, *, called: str | None = None) -> tuple[Charge, Account]:
        """What a claim would cost, and the account after it; nothing is debited.

        Parameters
        ----------
        called : str, optional
            The dataset's name in error messages, where users know it by another one.

        Raises
        ------
        BudgetExhausted, ClaimError
            as ``debit`` would.
        """
        return self._charged(self.account, claim, called or self.dataset)

    def cost(self, claim: Claim) -> Charge:
        """What a claim costs, whether or not as much is left.

        Raises
        ------
        ClaimError
            if the claim cannot be debited.
        """
        return charge_for(claim, self.account.terms, part=self.part)

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> LedgerDebit:
        """Debit a claim, or find the debit of this key; `hushsum.privacy.spending` calls it.

        Parameters
        ----------
        subject : mapping
            What is released, publicly: nothing that depends on the records.
        idempotency_key : str
            Names the attempt. The same key never spends twice, and is refused for anything else.

        Raises
        ------
        BudgetExhausted
            if less is left than the claim costs; nothing is debited.
        ClaimError
            if the claim cannot be debited.
        AlreadyPublished
            if the release with this key has reached its reader.
        UsageError
            if the key belongs to another release.
        """
        check_name("idempotency_key", idempotency_key)
        public = dict(subject)
        with self._writing() as journal:
            entry = journal.entry(idempotency_key)
            if entry is not None:
                check_same(entry, self.dataset, claim, public, self.part)
            else:
                charge, after = self._charged(journal.account(self.dataset), claim, self.dataset)
                body = {
                    "who": person(self._who),
                    "to": self._to,
                    "part": self.part,
                    "subject": public,
                    "claim": claim.as_json(),
                    "charge": charge.as_json(),
                    "account": after.as_json(),
                }
                journal.append(Kind.DEBITED, dataset=self.dataset, key=idempotency_key, body=body)
        return LedgerDebit(idempotency_key, self._reading, self._writing)

    def _charged(self, account: Account, claim: Claim, called: str) -> tuple[Charge, Account]:
        charge = charge_for(claim, account.terms, part=self.part)
        return charge, account.debited(charge, part=self.part, dataset=called)
