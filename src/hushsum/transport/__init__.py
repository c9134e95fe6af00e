"""Transport between peers: pinned keys, frames over TLS, self-checking messages, durable state of a process.

Shared by every protocol in which processes of several parties talk to each other. What a message means is
defined by the protocol that sends it.
"""
