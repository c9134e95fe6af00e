"""What the service answers, one subject a file."""
