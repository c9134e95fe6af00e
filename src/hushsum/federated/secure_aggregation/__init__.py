"""Secure aggregation of integer tables between sites, after Bonawitz et al. (CCS 2017).

Pure state machines, without sockets and clocks: `site` and `server` turn messages into messages. The noise is
drawn by the sites, inside the masks; `terms` fixes how much.
"""
