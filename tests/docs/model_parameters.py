"""The reference page of the models' parameters, written from their declarations.

``python -m tests.docs.model_parameters`` writes the page anew.
"""

from __future__ import annotations

from typing import Final

from hushsum.cli.model_options import option_name
from hushsum.jobs.model_catalogue import model_class, model_names
from hushsum.models.parameters import OWNER, SETTING

from .pages import DOCS

PAGE: Final = DOCS / "reference" / "model-parameters.md"
_HEAD: Final = """# Parameters of models

Every parameter of every model, from the declarations that also make the checks, the forms of the service
and the options of [`hushsum fit`](../how-to/fit-and-predict.md). `random_state` and the budget of a release
are the same for all, and are left out here.
This page is written by `python -m tests.docs.model_parameters`.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for name in model_names():
        kind = model_class(name)
        parts.append(
            f"\n## `{kind.__name__}`\n\n`hushsum fit {name}`\n\n| parameter | option | default | meaning |"
        )
        parts.append("|---|---|---|---|")
        for each in kind.PARAMETERS:
            if each.group == OWNER:
                continue
            option = option_name(each) if each.group == SETTING else f"--{each.name}"
            rule = each.rule()
            meaning = f"{each.help} {rule[:1].upper()}{rule[1:]}.".replace("|", "\\|")
            parts.append(f"| `{each.name}` | `{option}` | `{each.default!r}` | {meaning} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
