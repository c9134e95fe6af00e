"""Signing in at somebody else's authenticator: OpenID Connect, the authorization code flow with PKCE.

A provider says who somebody is; what that person may do is said by the account that an administrator has
linked. The parts: ``terms`` (what is configured), ``fetching`` (bounded requests), ``provider`` (what the
provider publishes, and the exchange of a code), ``keys`` and ``id_token`` (what is believed), ``flow`` (one
sign-in in one browser) and ``sign_in`` (all of them in order).
"""
