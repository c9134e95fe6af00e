"""``python -m hushsum`` is the command line."""

from hushsum.cli.main import run

if __name__ == "__main__":
    run()
