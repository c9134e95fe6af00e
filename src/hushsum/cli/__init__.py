"""The command line: one file a command, thin over ``hushsum.jobs``."""
