"""Links and sign-ins, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hushsum.errors import LedgerUnavailable, UsageError
from hushsum.service.store import Accounts, Actor, Identities, Store

ISSUER = "https://id.example"
SCOPES = {"owner": ("query",)}
ADMIN = Actor("acc_admin")


def admitted(identities: Identities, flow: str = "flow", sub: str = "1") -> tuple[str | None, str]:
    return identities.admit(ISSUER, "email", "olga@example.org", sub=sub, flow=flow, request="r")


@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
class TestIdentities:
    @pytest.fixture
    def place(self, request: pytest.FixtureRequest) -> str:
        return str(request.getfixturevalue(request.param))

    @pytest.fixture
    def store(self, place: str) -> Store:
        return Store.open(place, create=True)

    @pytest.fixture
    def account(self, store: Store) -> str:
        return Accounts(store.database).create("olga", "owner", ADMIN).id

    @pytest.fixture
    def identities(self, store: Store, account: str) -> Identities:
        made = Identities(store.database)
        assert made.link(account, ISSUER, "email", "olga@example.org", ADMIN)
        return made

    def test_a_ticket_is_redeemed_once(self, identities: Identities, store: Store, account: str) -> None:
        ticket, _ = admitted(identities)
        assert ticket is not None
        redeemed = identities.redeem(ticket, scopes=SCOPES, request="r")
        assert redeemed is not None
        assert redeemed.signed_in
        assert identities.redeem(ticket, scopes=SCOPES, request="r") is None
        found = Accounts(store.database).authenticate(redeemed.secret)
        assert found is not None
        assert found[0].id == account
        assert identities.unlink(account, ADMIN)
        assert Accounts(store.database).authenticate(redeemed.secret) is None
        actions = [line.action for line in store.log_lines()]
        assert actions[-6:] == [
            "identity linked",
            "identity proven",
            "signed in",
            "token issued",
            "token revoked",
            "identity unlinked",
        ]

    def test_a_race_for_one_ticket_has_one_winner(self, identities: Identities) -> None:
        ticket, _ = admitted(identities)
        assert ticket is not None
        with ThreadPoolExecutor(8) as pool:
            requested = [pool.submit(identities.redeem, ticket, scopes=SCOPES, request="r") for _ in range(8)]
        assert sum(each.result() is not None for each in requested) == 1

    def test_a_race_of_one_callback_has_one_ticket(self, identities: Identities) -> None:
        def attempt() -> bool:
            try:
                return admitted(identities)[0] is not None
            except LedgerUnavailable:  # The database's own constraint.
                return False

        with ThreadPoolExecutor(8) as pool:
            requested = [pool.submit(attempt) for _ in range(8)]
        assert sum(each.result() for each in requested) == 1

    def test_who_is_not_admitted(self, identities: Identities, store: Store, account: str) -> None:
        assert admitted(identities, "first")[0]
        assert admitted(identities, "first") == (None, "replayed")
        assert admitted(identities, "second", sub="2") == (None, "identity-changed")
        other = identities.admit(ISSUER, "sub", "olga@example.org", sub="1", flow="third", request="r")
        assert other == (None, "unknown-identity")
        Accounts(store.database).disable(account, ADMIN)
        assert admitted(identities, "fourth") == (None, "account-closed")
        assert identities.link(account, ISSUER, "email", "x", ADMIN) is None

    def test_one_person_has_one_account(self, identities: Identities, store: Store) -> None:
        other = Accounts(store.database).create("otto", "owner", ADMIN).id
        with pytest.raises(UsageError, match="one account"):
            identities.link(other, ISSUER, "email", "olga@example.org", ADMIN)
