"""The command line: modules named for their commands, each a thin layer over ``hushsum.operations``."""
