from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path

from hushsum.plotting import reader_folder, reader_script, web_page


def made(**options: object) -> str:
    return web_page(b"\x89HUSH", title="<b>&amp;", claim="1 < 2", options=options)


def test_the_policy_allows_the_script_and_the_style_and_nothing_else() -> None:
    page = made()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    for tag, kind in (('script type="module"', "script"), ("style", "style")):
        content = re.search(rf"<{tag}>(.*?)</{kind}>", page, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'; ")
    assert "connect-src" not in policy[1]
    # The name of SVG's elements is no address that is fetched.
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in page


def test_what_is_given_is_text_and_never_markup() -> None:
    page = made(labels=["</script><script>alert(1)</script>"])
    assert "<title>&lt;b&gt;&amp;amp;</title>" in page
    assert "1 &lt; 2" in page
    assert "alert(1)</script>" not in page
    assert page.count("</script>") == 3


def test_the_script_has_every_module_once_after_what_it_imports() -> None:
    script = reader_script()
    modules = re.findall(r"^const module_(\w+) = ", script, re.MULTILINE)
    assert len(modules) == len(set(modules))
    # A page does not need reports of the local model.
    named = {path.relative_to(reader_folder()).with_suffix("") for path in reader_folder().rglob("*.js")}
    assert set(modules) == {_variable(name) for name in named} - {"local_report"}
    for name in named - {Path("local_report")}:
        text = (reader_folder() / name).with_suffix(".js").read_text(encoding="utf-8")
        for other in re.findall(r"from \"([./\w]+)\.js\"", text):
            beside = Path(os.path.normpath(name.parent / other))
            assert modules.index(_variable(beside)) < modules.index(_variable(name))
    assert "import {" not in script
    assert not re.search(r"^export ", script, re.MULTILINE)
    # Either would end the script early.
    assert "</script" not in script
    assert "<!--" not in script


def _variable(name: Path) -> str:
    return str(name).replace("/", "_")


def test_the_reader_is_small() -> None:
    import gzip

    assert len(gzip.compress(reader_script().encode(), 9)) < 150_000
