"""Claims, release requests, spending, accounting and noise."""
