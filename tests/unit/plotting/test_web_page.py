from __future__ import annotations

import base64
import hashlib
import re

from hushsum.plotting.web_page import reader_folder, reader_script, web_page


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
    assert "http:" not in page
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
    # A page needs neither the viewer of the documentation nor reports of the local model.
    named = {path.stem for path in reader_folder().glob("*.js")} - {"viewer", "local_report"}
    assert set(modules) == named
    for name in modules:
        text = (reader_folder() / f"{name}.js").read_text(encoding="utf-8")
        for other in re.findall(r"from \"\./(\w+)\.js\"", text):
            assert modules.index(other) < modules.index(name)
    assert "import {" not in script
    assert not re.search(r"^export ", script, re.MULTILINE)
    # Either would end the script early.
    assert "</script" not in script
    assert "<!--" not in script


def test_the_reader_is_small() -> None:
    import gzip

    assert len(gzip.compress(reader_script().encode(), 9)) < 150_000
