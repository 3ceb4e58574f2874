"""People with twenty columns that identify them, among eight that do not."""

import uuid

import numpy as np
import pandas as pd

FIRST = [
    *("Anna", "Ben", "Carla", "David", "Eva", "Felix", "Greta", "Hugo", "Ida"),
    *("Jonas", "Klara", "Leo", "Mia", "Noah", "Olga", "Paul", "Rosa", "Samuel"),
    *("Tilda", "Viktor"),
]
LAST = [
    *("Abel", "Brandt", "Conrad", "Dietz", "Engel", "Fischer", "Graf", "Huber", "Imhof"),
    *("Jung", "Keller", "Lang", "Maurer", "Nagel", "Ott", "Peters", "Quast", "Richter"),
    *("Sommer", "Thiel", "Ulrich", "Vogt", "Wagner", "Xaver", "Young", "Zimmer", "Arnold"),
    *("Bauer", "Clausen", "Decker", "Ernst", "Frank"),
]
COMPLAINTS = ("headache", "a cough", "back pain", "fever", "nausea", "a rash", "dizziness", "insomnia")
RELATIVES = ("brother", "sister", "mother", "father", "neighbor", "teacher", "uncle", "aunt")
IDENTIFYING = frozenset(
    {
        *(
            "patient_id",
            "name",
            "first_name",
            "surname",
            "email",
            "phone",
            "street_address",
            "ssn",
            "iban",
            "passport_no",
        ),
        *("username", "ip_address", "device_uuid", "profile_url", "notes", "remarks", "emergency_contact", "mrn"),
        *("insurance_number", "license_plate"),
    }
)


def planted_people(n_people: int = 1_200, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    first, last = random.choice(FIRST, n_people), random.choice(LAST, n_people)
    digits = random.integers(0, 10, (n_people, 24)).astype(str)
    together = ["".join(row) for row in digits]
    letters = random.choice(list("ABCDEFGHJKLMNPRSTUVWXYZ"), (n_people, 4))
    complaint, relative = random.choice(COMPLAINTS, n_people), random.choice(RELATIVES, n_people)
    days = random.integers(1, 29, n_people)
    return pd.DataFrame(
        {
            "patient_id": random.permutation(np.arange(40_000, 40_000 + n_people)),
            "name": [f"{a} {b}" for a, b in zip(first, last, strict=True)],
            "first_name": first,
            "surname": last,
            "email": [f"{a}.{b}{d[:3]}@example.org".lower() for a, b, d in zip(first, last, together, strict=True)],
            "phone": [f"+49 30 {d[:4]} {d[4:8]}" for d in together],
            "street_address": [f"{b}weg {d[:2]}, {d[2:7]} Berlin" for b, d in zip(last, together, strict=True)],
            "ssn": [f"{d[:3]}-{d[3:5]}-{d[5:9]}" for d in together],
            "iban": [f"DE{d[:20]}" for d in together],
            "passport_no": [f"{''.join(x[:2])}{d[:7]}" for x, d in zip(letters, together, strict=True)],
            "username": [f"{a.lower()}_{b.lower()}{d[:2]}" for a, b, d in zip(first, last, together, strict=True)],
            "ip_address": [f"10.{int(d[:3]) % 256}.{int(d[3:6]) % 256}.{int(d[6:9]) % 256}" for d in together],
            "device_uuid": [str(uuid.UUID(int=int(random.integers(2**62)) << 64 | 7)) for _ in range(n_people)],
            "profile_url": [f"https://example.org/people/{a}-{d[:6]}" for a, d in zip(first, together, strict=True)],
            "notes": [
                f"Came with {what} after the {who} of {a} had called on day {day}"
                for what, who, a, day in zip(complaint, relative, first, days, strict=True)
            ],
            "remarks": [f"call {who} before {day}.5." for who, day in zip(relative, days, strict=True)],
            "emergency_contact": [f"{a} {b}" for a, b in zip(random.permutation(first), last, strict=True)],
            "mrn": [f"{d[:8]}" for d in together],
            "insurance_number": [f"{x[0]}{d[:9]}" for x, d in zip(letters, together, strict=True)],
            "license_plate": [f"B-{''.join(x[:2])} {d[:4]}" for x, d in zip(letters, together, strict=True)],
            "age": random.integers(0, 95, n_people),
            "sex": random.choice(["female", "male"], n_people),
            "zip": [f"{d[:2]}000" for d in together],
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 360, n_people), unit="D"),
            "diagnosis": random.choice(["J45.0", "I10", "E11.9", "M54.5", "F32.1"], n_people),
            "ward": random.choice(["north", "south", "intensive care"], n_people),
            "visits": random.poisson(3, n_people),
            "cost": (random.lognormal(6, 1, n_people)).round(-1),
        }
    )
