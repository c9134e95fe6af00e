"""``hushsum show``."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from hushsum.cli import options
from hushsum.cli.output import short, write, write_facts, write_json
from hushsum.cli.release_report import warn_if_insecure
from hushsum.cli.tally import write_tally
from hushsum.operations import FunctionDescription, ModelDescription, describe_file
from hushsum.planning import bytes_in_words
from hushsum.records import names_in_words

_MOST_NUMBERS: Final = 64


def show(
    file: Annotated[
        str, typer.Argument(help="A .hush or .tally file; - reads a .hush file from standard input.")
    ],
    json: options.Json = False,
) -> None:
    """Describe a file and its claim. For a tally only the public header is shown.

    hushsum show skin.hush
    """
    description = describe_file(file)
    if isinstance(description, FunctionDescription):
        warn_if_insecure(description.function.claim)
    elif isinstance(description, ModelDescription):
        warn_if_insecure(description.bundle.claim)
    if json:
        write_json(description.as_json())
    elif isinstance(description, FunctionDescription):
        _write_function(description)
    elif isinstance(description, ModelDescription):
        _write_model(description)
    else:
        write(description.as_json()["warning"] + "\n")
        write_tally(description)


def _write_function(description: FunctionDescription) -> None:
    about = description.function.describe()
    write(about.claim.sentence() + "\n")
    facts = about.facts()
    if description.size is not None:
        facts.append(("size", bytes_in_words(description.size)))
    write_facts(facts)


def _write_model(description: ModelDescription) -> None:
    described = description.as_json()
    write(description.bundle.claim.sentence() + "\n")
    declared = described["parameters"] or {}
    parameters = {name: value for name, value in declared.items() if name not in ("bounds", "columns")}
    changed = [f"{name} {_in_short(value)}" for name, value in parameters.items()]
    facts = [
        ("model", str(described["model"])),
        ("claim", repr(description.bundle.claim)),
        ("parameters", ", ".join(changed)),
        ("columns", "not named" if described["columns"] is None else names_in_words(described["columns"])),
    ]
    if described["kernels"]:
        facts.append(("kernel", "; ".join(described["kernels"])))
    # The bounds of declared columns are in their declarations.
    if described["bounds"] is not None and not declared.get("columns"):
        facts.append(("bounds", _bounds(described["bounds"])))
    mechanism = description.bundle.claim
    facts.append(("mechanism", f"{mechanism.mechanism}, {mechanism.arithmetic}"))
    if described["classes"] is not None:
        facts.append(("classes", names_in_words([str(each) for each in described["classes"]])))
    facts.append(("released", names_in_words([*described["parts"], *described["arrays"]])))
    errors = description.expected_errors
    columns = described["columns"]
    for name, values in description.bundle.arrays.items():
        label = name.replace("_", " ")
        if name == "expected_errors" and errors:
            facts.append((label, _errors(errors)))
        elif values.size <= _MOST_NUMBERS:
            if columns is not None and values.ndim == 2 and values.shape[1] == len(columns):
                label += f" ({names_in_words(columns)})"
            facts.append((label, "; ".join(_row(row) for row in values)))
    facts.append(("producer", described["producer"]))
    if description.size is not None:
        facts.append(("size", bytes_in_words(description.size)))
    write_facts(facts)


def _errors(errors: dict[tuple[str, ...], float]) -> str:
    """The expected errors of the tables of a synthesizer, by their columns; of many only the largest pair."""
    shown = dict(errors)
    left_out = ""
    if len(errors) > _MOST_NUMBERS:
        largest = max((names for names in errors if len(names) > 1), key=errors.__getitem__)
        shown = {names: error for names, error in errors.items() if len(names) == 1 or names == largest}
        left_out = f"; {len(errors) - len(shown)} further pairs have smaller ones, which --json lists"
    listed = ", ".join(f"{' × '.join(names)} {100 * error:.2g} %" for names, error in shown.items())
    return f"{listed} of the records in a wrong cell{left_out}"


def _bounds(declared: Any) -> str:
    """Bounds as they were given: one pair, a list of them, or a dictionary."""
    if isinstance(declared, dict):
        return names_in_words([f"{name} {low:g}:{high:g}" for name, (low, high) in declared.items()])
    pairs = [declared] if not isinstance(declared[0], list | tuple) else declared
    return names_in_words([f"{low:g}:{high:g}" for low, high in pairs])


def _row(row: Any) -> str:
    """A number, or the numbers of a point."""
    return ", ".join(short(float(each)) for each in row.reshape(-1)) if row.ndim else short(float(row))


def _in_short(value: object) -> str:
    """A parameter on one line; a long list by its length."""
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 or not isinstance(value, list | dict) else f"of {len(value)}"
