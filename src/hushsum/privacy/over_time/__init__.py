"""Mechanisms that release a running sum again and again under one claim, paid once."""
