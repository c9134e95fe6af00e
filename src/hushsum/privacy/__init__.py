"""What a release promises, what it spends, and the noise that keeps the promise."""
