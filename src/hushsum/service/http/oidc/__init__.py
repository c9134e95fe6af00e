"""Sign-in with an identity provider: OpenID Connect, the authorization code flow with PKCE.

The provider authenticates a person; the account that an administrator has linked decides what that person may
do.
"""
