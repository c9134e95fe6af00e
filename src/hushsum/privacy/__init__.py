"""What a release promises, and the noise that keeps the promise."""
