"""Columns that lead to people, planted, and ordinary columns beside which they must be found."""

import hashlib
import uuid

import numpy as np
import pandas as pd

FIRST = {
    "en": ["Mary", "James", "Linda", "Robert", "Ann", "William", "Susan", "Mary-Jane", "Thomas", "Daniel", "Nancy"],
    "de": ["Jürgen", "Käthe", "Wolfgang", "Heike", "Uwe", "Sabine", "Björn", "Annemarie", "Jens", "Ute"],
    "fr": ["Chloé", "Jean-Pierre", "Hélène", "François", "Anaïs", "Étienne", "Zoé", "Luc", "Inès", "Gaël"],
    "pl": ["Łukasz", "Żaneta", "Małgorzata", "Paweł", "Ewa", "Grzegorz", "Agnieszka", "Zofia", "Piotr", "Jan"],
    "ru": ["Иван", "Мария", "Ольга", "Сергей", "Анна", "Дмитрий", "Юлия", "Пётр", "Елена", "Алексей"],
    "ar": ["محمد", "فاطمة", "أحمد", "عائشة", "علي", "خديجة", "يوسف", "مريم", "عمر", "زينب"],
}
LAST = {
    "en": ["Smith", "O'Neill", "Johnson", "McDonald", "Brown", "Taylor", "Wright", "Hall", "Green", "Baker", "Hill"],
    "de": ["Müller", "von Weizsäcker", "Groß", "Schäfer", "Köhler", "Weiß", "Jung", "Hahn", "Vogel", "Möller"],
    "fr": ["Lefèvre", "de la Tour", "D'Arcy", "Dubois", "Moreau", "Lemaître", "Noël", "Petit", "Roux", "Blanc"],
    "pl": ["Nowak", "Wójcik", "Kowalczyk", "Zieliński", "Szymańska", "Król", "Dąbrowski", "Mazur", "Wróbel", "Kot"],
    "ru": ["Иванов", "Петрова", "Кузнецов", "Соколова", "Лебедев", "Новикова", "Волков", "Зайцева", "Орлов", "Белова"],
    "ar": ["الحسن", "القاسم", "العلي", "المصري", "الشامي", "النجار", "حداد", "خوري", "صالح", "ناصر"],
}
LANGUAGES = tuple(FIRST)
HAN = ["王", "李", "张", "刘", "陈", "杨", "黄", "赵", "伟", "芳", "娜", "敏", "静", "丽", "强", "磊", "军", "洋"]
WORDS = {
    "en": "patient came late today and said that the pain in her left knee was worse than before the long trip",
    "de": "Patient klagt seit drei Tagen über Schmerzen im rechten Knie und kann nachts kaum noch schlafen",
    "fr": "la patiente dit que la douleur au genou est plus forte depuis son retour de voyage en train",
    "pl": "pacjent zgłasza ból kolana od trzech dni i nie może spać w nocy przez silny kaszel",
    "ru": "пациент жалуется на боль в колене уже три дня и плохо спит по ночам из-за кашля",
    "ar": "المريض يشكو من ألم في الركبة منذ ثلاثة أيام ولا ينام جيدا في الليل",
}
STREETS = {
    "en": ["{} Maple Street", "{} Old Mill Road", "Flat 3, {} King's Avenue, London"],
    "de": ["Hauptstraße {}", "Am Alten Markt {}a, 50667 Köln", "Goethestr. {}"],
    "fr": ["{} rue de la Paix", "{} bis, avenue Victor-Hugo, 75016 Paris", "{} place du Marché"],
    "pl": ["ul. Długa {}", "Aleje Jerozolimskie {}, 00-697 Warszawa", "Rynek Główny {}"],
    "ru": ["ул. Ленина, д. {}", "Невский проспект, {}", "Тверская ул., {}"],
    "ar": ["شارع النيل {}", "{} شارع الجامعة", "حي السلام {}"],
}
COMPANIES = ["example.org", "mail.example.com", "klinik-nord.example", "uni.example.edu"]


def _pick(random, options):
    return options[int(random.integers(len(options)))]


def _digits(random, count):
    return "".join(str(digit) for digit in [random.integers(1, 10), *random.integers(0, 10, count - 1)])


def _letters(random, count, letters="ABCDEFGHJKLMNPQRSTUVWXYZ"):
    return "".join(_pick(random, letters) for _ in range(count))


def _name(random, language):
    first = _pick(random, FIRST[language])
    middle = f" {_pick(random, FIRST[language])}" if random.random() < 0.3 else ""
    last = _pick(random, LAST[language])
    # Real families have more names than this list: most get a second one.
    return f"{first}{middle}", f"{last}-{_pick(random, LAST[language])}" if random.random() < 0.7 else last


def _moment(random):
    return pd.Timestamp("2021-01-01") + pd.Timedelta(seconds=int(random.integers(0, 3 * 365 * 86_400)))


def _ascii_name(random):
    return f"{_pick(random, FIRST['en'])}{_pick(random, LAST['en'])}".lower().replace("'", "").replace("-", "")


PLANTED = {
    "email": lambda r, _, i: f"{_ascii_name(r)}{r.integers(1, 9_999)}@{_pick(r, COMPANIES)}",
    "phone with country code": lambda r, _, i: f"+49 {_digits(r, 3)} {_digits(r, 7)}",
    "phone in brackets": lambda r, _, i: f"({_digits(r, 3)}) {_digits(r, 3)}-{_digits(r, 4)}",
    "phone with dots": lambda r, _, i: (
        f"0{_digits(r, 1)}.{_digits(r, 2)}.{_digits(r, 2)}.{_digits(r, 2)}.{_digits(r, 2)}"
    ),
    "phone with slash": lambda r, _, i: f"0{_digits(r, 3)}/{_digits(r, 6)}",
    "phone as digits": lambda r, _, i: f"0{_digits(r, 10)}",
    "local phone": lambda r, _, i: f"{_digits(r, 3)}-{_digits(r, 4)}",
    "url": lambda r, _, i: f"https://www.example.org/people/{_ascii_name(r)}-{r.integers(9_999)}?tab=about",
    "iban": lambda r, _, i: (
        f"DE{_digits(r, 2)} {_digits(r, 4)} {_digits(r, 4)} {_digits(r, 4)} {_digits(r, 4)} {_digits(r, 2)}"
    ),
    "iban without spaces": lambda r, _, i: f"GB{_digits(r, 2)}{_letters(r, 4)}{_digits(r, 14)}",
    "passport": lambda r, _, i: f"C{_letters(r, 2)}{_digits(r, 5)}{_letters(r, 1)}",
    "social security number": lambda r, _, i: f"{_digits(r, 3)}-{_digits(r, 2)}-{_digits(r, 4)}",
    "national number with dots": lambda r, _, i: f"{_digits(r, 3)}.{_digits(r, 3)}.{_digits(r, 3)}-{_digits(r, 2)}",
    "national number with letter": lambda r, _, i: f"{_digits(r, 8)}{_letters(r, 1)}",
    "uuid": lambda r, _, i: str(uuid.UUID(bytes=r.bytes(16))),
    "first and last name": lambda r, language, i: " ".join(_name(r, language)),
    "last and first name": lambda r, language, i: ", ".join(_name(r, language)[::-1]),
    "names in capitals": lambda r, language, i: " ".join(_name(r, language)).upper(),
    "titled name": lambda r, language, i: f"Dr. {' '.join(_name(r, language))}",
    "Chinese name": lambda r, _, i: _pick(r, HAN[:8]) + _pick(r, HAN) + _pick(r, HAN),
    "name list": lambda r, language, i: "; ".join(" ".join(_name(r, language)) for _ in range(r.integers(2, 5))),
    "free text": lambda r, language, i: " ".join(_pick(r, WORDS[language].split()) for _ in range(r.integers(8, 30))),
    "timestamp as text": lambda r, _, i: str(_moment(r)),
    "timestamp in another order": lambda r, _, i: f"{_moment(r):%d.%m.%Y %H:%M}",
    "American timestamp": lambda r, _, i: f"{_moment(r):%m/%d/%Y %I:%M %p}",
    "ip address": lambda r, _, i: ".".join(str(each) for each in r.integers(1, 255, 4)),
    "licence plate": lambda r, _, i: f"{_letters(r, 2)}-{_letters(r, 2)} {_digits(r, 3)}",
    "British plate": lambda r, _, i: f"{_letters(r, 2)}{_digits(r, 2)} {_letters(r, 3)}",
    "street address": lambda r, language, i: _pick(r, STREETS[language]).format(r.integers(1, 900)),
    "coordinates": lambda r, _, i: f"{r.uniform(47, 55):.5f}, {r.uniform(6, 15):.5f}",
    "digest": lambda r, _, i: hashlib.sha256(r.bytes(8)).hexdigest(),
    "short digest": lambda r, _, i: hashlib.md5(r.bytes(8), usedforsecurity=False).hexdigest()[:16],
    "base64 token": lambda r, _, i: _letters(r, 22, "abcdefghijkXYZABCDEFG0123456789_-"),
    "user name": lambda r, _, i: f"{_ascii_name(r)[:6]}{r.integers(10, 9_999)}",
    "user name with dot": lambda r, _, i: f"{_pick(r, 'abcdefghij')}.{_ascii_name(r)}{r.integers(1, 99)}",
    "medical record number": lambda r, _, i: f"MRN-{_digits(r, 7)}",
    "booking code": lambda r, _, i: _letters(r, 6, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"),
    "file path": lambda r, language, i: f"/home/{_ascii_name(r)}/scans/{_name(r, language)[0]}_{r.integers(9_999)}.pdf",
    "Windows path": lambda r, _, i: (
        f"C:\\Users\\{_ascii_name(r)}{r.integers(999)}\\Documents\\letter {r.integers(99)}.docx"
    ),
    "running number as text": lambda r, _, i: str(i + 1),
    "running number with zeros": lambda r, _, i: f"{7 * i + 3:06d}",
    "long number as text": lambda r, _, i: _digits(r, 12),
}
"""One value by its kind: of a random generator, a language, and the place of the record."""


def planted(kind, n_records, language="en", missing=0.0, seed=0, dtype=None):
    """Return a column of a kind, where a share of the values is missing."""
    random = np.random.default_rng([seed, n_records, len(kind)])
    values = pd.Series([PLANTED[kind](random, language, place) for place in range(n_records)], dtype=object)
    values[random.random(n_records) < missing] = None
    # In an order that says nothing.
    return values.sample(frac=1, random_state=seed).reset_index(drop=True).astype(dtype or "str")


def planted_numbers(n_records, missing=0.0, seed=0):
    """Return numbers and times that lead to people."""
    random = np.random.default_rng([seed, n_records])
    order = random.permutation(n_records)
    table = pd.DataFrame(
        {
            "running": order + 1,
            "running in tens": 40_000 + 10 * order,
            "account": random.integers(10**9, 10**10, n_records),
            "card": random.integers(10**15, 10**16, n_records),
            "record": random.choice(np.arange(10**6, 10**7), n_records, replace=False),
            "patient_no": random.choice(np.arange(10**5, 4 * 10**6), n_records, replace=False),
            "moment": [_moment(random) for _ in range(n_records)],
            "zoned moment": pd.DatetimeIndex([_moment(random) for _ in range(n_records)]).tz_localize("UTC"),
            "home_lat": np.round(random.uniform(47, 55, n_records), 5),
        }
    )
    return table.mask(random.random((n_records, len(table.columns))) < missing)


def ordinary(n_records, seed=0):
    """Return columns that lead to nobody, in words, codes and dates of every day."""
    random = np.random.default_rng([seed, n_records])

    def some(options):
        weights = 1 / np.arange(1, len(options) + 1)
        return random.choice(options, n_records, p=weights / weights.sum())

    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 1_500, n_records), unit="D")
    return pd.DataFrame(
        {
            "diagnosis": some(
                [f"{letter}{number}.{digit}" for letter in "EIJM" for number in range(10, 40) for digit in (0, 9)]
            ),
            "undotted diagnosis": some([f"{letter}{number}" for letter in "EIJM" for number in range(100, 200)]),
            "substance": some(
                [f"N0{group}B{letter}0{number}" for group in range(1, 7) for letter in "ABE" for number in range(1, 6)]
            ),
            "occupation": some(
                [
                    "Nurse",
                    "Software Engineer",
                    "Teacher",
                    "Sales Manager",
                    "Truck Driver",
                    "Registered Nurse",
                    "Accountant",
                    "Electrician",
                    "Police Officer",
                    "Research Assistant",
                ]
            ),
            "city": some(
                [
                    "Berlin",
                    "New York",
                    "São Paulo",
                    "Los Angeles",
                    "Köln",
                    "Paris",
                    "Rio de Janeiro",
                    "Kraków",
                    "San Francisco",
                    "London",
                    "Москва",
                    "Lyon",
                ]
            ),
            "place": some(
                ["Portland, OR", "Austin, TX", "Paris, France", "Berlin, Germany", "Lyon, France", "Boston, MA"]
            ),
            "product": some(
                ["Organic Green Tea", "Blue Widget", "Red Widget", "Garden Chair", "USB-C Cable", "Oat Milk"]
            ),
            "answer": some(
                [
                    "I am very satisfied with the service that I received.",
                    "I am rather satisfied with it.",
                    "I am neither satisfied nor dissatisfied with the service.",
                    "I would not come here again.",
                    "I do not want to say anything about this question.",
                ]
            ),
            "free category": some(["walking and cycling", "by car", "by bus or train", "other", "none of these"]),
            "price": np.round(random.gamma(2, 60, n_records), 2),
            "price as text": [f"{value:,.2f}" for value in random.gamma(2, 900, n_records)],
            "price in euros": [f"€{value:.2f}" for value in random.gamma(2, 60, n_records)],
            "percent": [f"{value:.1f} %" for value in random.uniform(0, 100, n_records)],
            "weight as text": [f"{value:.1f} kg" for value in random.normal(75, 12, n_records)],
            "day": days,
            "day in a zone": days.tz_localize("Asia/Kolkata").tz_convert("UTC"),
            "day as text": days.strftime("%Y-%m-%d"),
            "German day": days.strftime("%d.%m.%Y"),
            "day in words": days.strftime("%d %B %Y"),
            "day at midnight": days.strftime("%Y-%m-%d 00:00:00"),
            "day as a number": days.strftime("%Y%m%d").astype(int),
            "income band": some(["0-9999", "10000-19999", "20000-29999", "30000+", "<0"]),
            "time of day": some([f"{hour:02d}:{minute:02d}" for hour in range(8, 18) for minute in (0, 15, 30, 45)]),
            "visits": random.poisson(3, n_records),
            "cost": np.round(random.lognormal(4, 1.5, n_records), 2),
            "income": (random.lognormal(10.3, 0.7, n_records) / 100).round().astype(int) * 100,
            "weight": (random.lognormal(12, 0.6, n_records)).astype(int),
            "score": random.normal(0, 1, n_records),
            "budget": random.integers(1, 900, n_records) * 10_000_000,
            "consent": random.random(n_records) < 0.7,
            "constant": "person@example.org",
            "department": some(["Surgery", "Cardiology", "Ward 12", "Ward 7", "Day Clinic"]),
        }
    )
