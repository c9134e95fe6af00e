"""Hushsum: release a function of your private data once; ask it questions for ever."""
