"""Sign-in with an identity provider: OpenID Connect, the authorization code flow with PKCE.

The provider authenticates a person; the account that an administrator has linked decides what that person may
do. The parts: ``provider_settings`` (configuration), ``provider_requests`` (bounded requests), ``provider``
(discovery, and the exchange of a code), ``keys`` and ``id_token`` (verification), ``flow`` (one sign-in in
one browser) and ``sign_in`` (the steps in order).
"""
