"""What the commands ``keys`` of several protocols do: make a key file, or show one."""

from __future__ import annotations

from hushsum.cli.output import tell, write, write_json


def show_key_file(file: str, *, json: bool) -> None:
    """Make a key pair unless there is one, and print its fingerprint."""
    from hushsum.jobs.summarize_keys import show_keys

    shown = show_keys(file)
    if json:
        write_json(shown.as_json())
        return
    tell(f"Made {file}; keep it secret." if shown.made else f"{file} exists and is unchanged.")
    write(shown.fingerprint)
