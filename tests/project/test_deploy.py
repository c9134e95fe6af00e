"""The samples of the folder ``deploy``: what they name exists, and a backup can be restored."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from dataclasses import fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from hushsum.service.http import create_app
from hushsum.service.settings import FILE, PREFIX, Settings
from tests.in_process_service import Town
from tests.postgres_server import own_postgres_server

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXTS = {path: path.read_text() for path in DEPLOY.rglob("*") if path.is_file()}
POINT = {"points": [[1.0, -2.0]]}


def test_every_setting_that_a_sample_names_exists() -> None:
    known = {PREFIX + each.name.upper() for each in fields(Settings)}
    known |= {PREFIX + each.name.upper() + FILE for each in fields(Settings) if each.metadata["secret"]}
    named = {name for text in TEXTS.values() for name in re.findall(r"HUSHSUM_[A-Z_]+", text)}
    assert len(named) > 8
    assert named <= known | {"HUSHSUM_STATE"}


def test_no_sample_has_a_secret_or_runs_as_root() -> None:
    for path, text in TEXTS.items():
        assert not re.search(r"(?i)(password|token|secret)[\w ]*[:=] *[0-9a-f]{16}", text), path
    assert re.search(r"^USER hushsum$", TEXTS[DEPLOY / "Dockerfile"], re.M)
    unit = TEXTS[DEPLOY / "systemd" / "hushsum.service"]
    for line in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "StateDirectoryMode=0700"):
        assert line in unit


def test_containers_have_no_powers_and_keep_what_must_persist() -> None:
    compose = yaml.safe_load(TEXTS[DEPLOY / "compose.yaml"])
    service = compose["services"]["service"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert {each.split(":")[0] for each in service["volumes"]} <= set(compose["volumes"])
    assert set(service["secrets"]) <= set(compose["secrets"])
    kinds = {each["kind"]: each for each in yaml.safe_load_all(TEXTS[DEPLOY / "kubernetes" / "hushsum.yaml"])}
    pod = kinds["StatefulSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    image = TEXTS[DEPLOY / "Dockerfile"]
    for name in ("HUSHSUM_FOLDER", "HUSHSUM_STATE"):
        place = re.findall(rf"{name}=(\S+)", image)[0]
        assert place in mounts
        assert f'"{place}"' in image
        assert any(each.endswith(f":{place}") for each in service["volumes"])


def test_every_container_is_limited_and_the_database_reaches_nothing() -> None:
    compose = yaml.safe_load(TEXTS[DEPLOY / "compose.yaml"])
    for name, container in compose["services"].items():
        assert container["cap_drop"] == ["ALL"], name
        assert container["security_opt"] == ["no-new-privileges:true"], name
        assert container["read_only"] is True, name
        assert {"mem_limit", "cpus", "pids_limit"} <= set(container), name
    database = compose["services"]["database"]
    assert "ports" not in database
    assert [compose["networks"][each]["internal"] for each in database["networks"]] == [True]
    assert set(database["networks"]) & set(compose["services"]["service"]["networks"])
    unit = TEXTS[DEPLOY / "systemd" / "hushsum.service"]
    assert re.search(r"^MemoryMax=\d+G$", unit, re.M)


def test_the_image_is_built_from_locked_files() -> None:
    image = TEXTS[DEPLOY / "Dockerfile"]
    assert re.search(r"^ARG BASE=", image, re.M), "the base image can be given by its digest"
    assert set(re.findall(r"^FROM (\S+)", image, re.M)) == {"${BASE}"}
    installed = re.findall(r"pip (?:install|wheel) [^\\\n]*", image)
    assert installed
    for command in installed:
        assert "--no-deps" in command, command
        assert {"--require-hashes", "--no-build-isolation", "--no-index"} & set(command.split()), command
    for lock in re.findall(r"-r (\S+\.lock)", image):
        assert (DEPLOY.parent / lock).is_file()


def test_the_pods_network_is_closed_and_measurements_stay_inside() -> None:
    kinds: dict[str, list[Any]] = {}
    for each in yaml.safe_load_all(TEXTS[DEPLOY / "kubernetes" / "hushsum.yaml"]):
        kinds.setdefault(each["kind"], []).append(each)
    [policy] = kinds["NetworkPolicy"]
    assert policy["spec"]["podSelector"] == {}
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    for rule in policy["spec"]["ingress"]:
        assert rule["from"]
        assert rule["ports"]
    for rule in policy["spec"]["egress"]:
        assert rule["to"]
        assert rule["ports"]
    [workload] = kinds["StatefulSet"]
    [container] = workload["spec"]["template"]["spec"]["containers"]
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    [proxies] = [each["value"] for each in container["env"] if each["name"] == "HUSHSUM_TRUSTED_PROXIES"]
    assert all(ip_network(each).num_addresses <= 256 for each in proxies.split(","))
    [ingress] = kinds["Ingress"]
    [rule] = ingress["spec"]["rules"]
    served = {each["path"]: each["backend"]["service"]["name"] for each in rule["http"]["paths"]}
    pods = {each["metadata"]["name"]: each["spec"].get("selector") for each in kinds["Service"]}
    assert pods[served["/"]]
    assert pods[served["/metrics"]] is None, "nobody outside reads the metrics"


def test_the_proxy_keeps_keys_of_links_out_of_its_log() -> None:
    text = TEXTS[DEPLOY / "nginx" / "hushsum.conf"]
    logged = re.findall(r"log_format hushsum '([^']*)'", text)[0]
    assert not {"$request_uri", "$uri", "$http_referer"} & set(re.findall(r"\$\w+", logged))
    servers = text.split("\nserver {")[1:]
    assert len(servers) == 2
    assert all("access_log /var/log/nginx/hushsum.log hushsum;" in each for each in servers)
    assert all("error_log /var/log/nginx/error.log crit;" in each for each in servers)
    kinds = {each["kind"]: each for each in yaml.safe_load_all(TEXTS[DEPLOY / "kubernetes" / "hushsum.yaml"])}
    noted = kinds["Ingress"]["metadata"]["annotations"]
    assert noted["nginx.ingress.kubernetes.io/enable-access-log"] == "false"
    assert "proxy_request_buffering off;" in text, "records must not be written to the proxy's disk"


def test_a_sqlite_service_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restored(tmp_path, monkeypatch, "", "", os.environ["PATH"])


@pytest.mark.slow
def test_a_postgres_service_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with own_postgres_server() as server:
        admin = sa.create_engine(server.url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(sa.text("CREATE DATABASE first"))
            connection.execute(sa.text("CREATE DATABASE second"))
        admin.dispose()
        path = f"{server._home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        first, second = (server.url.replace("/postgres?", f"/{name}?") for name in ("first", "second"))
        restored(tmp_path, monkeypatch, first, second, path)


def restored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, database: str, empty_database: str, path: str
) -> None:
    """Release, copy, release again, lose everything, restore: the second one is missed and written off."""
    monkeypatch.setenv("HUSHSUM_STATE", str(folder / "state"))
    town = Town(folder, database=database)
    dataset = town.dataset()
    tally = town.tally(dataset)
    kept = released(town, dataset, tally)
    before = town.ok("olga", "POST", f"/functions/{kept}/query", json=POINT)

    def run(script: str, database: str) -> str:
        environment = {"PATH": path, "HUSHSUM_FOLDER": town.settings.folder, "HUSHSUM_DATABASE": database}
        done = subprocess.run(
            [DEPLOY / script, folder / "copy"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    town.settings.path("streams", "st_0000000000000000.stream").write_bytes(b"a state")
    assert "confidential" in run("backup.sh", database)
    copied = [each.name for each in (folder / "copy").rglob("*")]
    assert not [name for name in copied if "guard" in name], "an old guard would hide an old database"
    assert not [name for name in copied if "stream" in name], "an old state would draw steps a second time"
    lost = released(town, dataset, tally)
    shutil.move(town.settings.folder, folder / "lost")
    run("restore.sh", empty_database)

    again = object.__new__(Town)
    again.settings = Settings(
        folder=town.settings.folder,
        database=empty_database,
        admin_token=town.settings.admin_token,
        workers=0,
        cache_seconds=0.001,
        log_level="ERROR",
    )
    again.app = create_app(again.settings)
    again.tokens, again.ids = town.tokens, town.ids
    assert again.ok("olga", "POST", f"/functions/{kept}/query", json=POINT) == before
    again.refused("olga", "GET", f"/functions/{lost}", 404)
    reasons = again.ask(None, "GET", "/readyz").json()["reasons"]
    assert any("restored backup" in each for each in reasons), reasons
    request = again.confirmed(dataset, tally, epsilon=0.5)
    path_of_releases = f"/datasets/{dataset}/releases"
    headers = {"idempotency-key": "too-early"}
    again.refused("olga", "POST", path_of_releases, 503, json=request, headers=headers)
    again.ok("admin", "POST", "/ledger/restores", 201, json={"reason": "disk failure"})
    charge = {"epsilon": 0.5, "reason": "the release after the copy"}
    again.ok("olga", "POST", f"/datasets/{dataset}/write-offs", 201, json=charge)
    released(again, dataset, tally)
    budget = again.ok("olga", "GET", f"/datasets/{dataset}")["budget"]
    assert budget["spent"]["epsilon"] == "3/2", "the release before, the one that was lost, and the new one"


def released(town: Town, dataset: str, tally: str) -> str:
    requested: dict[str, Any] = town.confirmed(dataset, tally, epsilon=0.5)
    job = town.job(f"/datasets/{dataset}/releases", requested, key=secrets.token_hex(8))
    assert job["state"] == "done", job
    return str(job["result"]["function"])
