"""Words in column names, for proposing roles."""

from __future__ import annotations

from typing import Final

from privacy_assets.columns.place_names import PLACES

PERSON_WORDS: Final = frozenset(
    [
        *("applicant", "borrower", "citizen", "client", "customer", "employee", "guest", "household"),
        *("insured", "member", "mrn", "participant", "patient", "patienten", "person", "personal", "personen"),
        *("pid", "respondent", "staff", "student", "subject", "taxpayer", "user", "versicherten", "voter"),
        *("worker",),
    ]
)
"""Words for people, as in ``patient_id``."""

NUMBER_WORDS: Final = frozenset(
    [
        *("code", "guid", "hash", "id", "identifiant", "identifier", "identifikation", "ids", "kennung", "key"),
        *("matricule", "mrn", "no", "nr", "num", "number", "numero", "nummer", "pid", "pseudonym", "ref"),
        *("token", "uid", "uuid"),
    ]
)
"""Last words of the names of numbers."""

IDENTIFIERS: Final = frozenset(
    [
        *("address", "adresse", "anschrift", "cellphone", "dni", "email", "fax", "firstname", "forename"),
        *("fullname", "iban", "imei", "insee", "ip", "lastname", "license", "login", "mail", "mobile", "mrn"),
        *("msisdn", "nachname", "nif", "nino", "nom", "passport", "phone", "photo", "plate", "prenom", "siret"),
        *("sozialversicherungsnummer", "ssn", "steuernummer", "strasse", "straße", "street", "surname", "tel"),
        *("telefon", "telephone", "url", "username", "vorname"),
    ]
)
"""Words in names of columns whose texts identify a person even if others share them, such as first names."""

NAME_OF: Final = PERSON_WORDS | frozenset(
    [
        *("birth", "contact", "doctor", "emergency", "family", "father", "first", "full", "given", "husband"),
        *("last", "maiden", "middle", "mother", "nick", "parent", "physician", "spouse", "wife"),
    ]
)
"""Words before ``name`` that make it the name of a person."""

REMARKS: Final = frozenset(
    [
        *("anamnese", "anmerkung", "anmerkungen", "bemerkung", "bemerkungen", "comment", "commentaire"),
        *("comments", "description", "freetext", "freitext", "journal", "letter", "memo", "message"),
        *("narrative", "note", "notes", "notiz", "notizen", "observation", "observations", "remark", "remarks"),
        *("report", "text"),
    ]
)
"""Last words of the names of columns with free text."""

SENSITIVE: Final = frozenset(
    [
        *("abortion", "addiction", "affair", "affairs", "aids", "alcohol", "allergies", "allergy", "arrest"),
        *("balance", "blood", "bmi", "cancer", "charge", "charges", "cholesterol", "claim", "claims", "cost"),
        *("costs", "credit", "crime", "debt", "default", "depression", "diabetes", "diagnose", "diagnoses"),
        *("diagnosis", "disability", "disease", "disorder", "dose", "drug", "drugs", "einkommen"),
        *("expenditure", "gehalt", "genotype", "glucose", "gpa", "grade", "health", "hiv", "icd", "illness"),
        *("income", "infection", "insulin", "lab", "limitation", "loan", "medication", "mental", "mortality"),
        *("offense", "orientation", "outcome", "pain", "party", "payment", "political", "politics"),
        *("pregnancy", "pregnant", "prescription", "pressure", "profit", "psychiatric", "rating", "religion"),
        *("religious", "result", "revenue", "salary", "savings", "score", "sentence", "sexual", "smoker"),
        *("smoking", "spending", "suicide", "symptom", "symptoms", "test", "therapy", "treatment", "union"),
        *("visits", "wage", "wealth", "weight"),
    ]
)
"""Words in names of columns that must not become known about anybody."""

QUASI: Final = PLACES | frozenset(
    [
        *("admission", "admitted", "age", "alter", "ancestry", "beruf", "birth", "birthdate", "birthday"),
        *("born", "children", "citizenship", "civil", "date", "day", "dob", "educ", "education", "ethnic"),
        *("ethnicity", "familienstand", "family", "geburt", "geburtsdatum", "gender", "geschlecht", "grad"),
        *("height", "hired", "hour", "hours", "household", "husb", "husband", "island", "job", "joined"),
        *("kinder", "language", "marital", "marriage", "married", "month", "nationality", "native", "occ"),
        *("occupation", "origin", "profession", "race", "relationship", "residence", "school", "schooling"),
        *("sex", "species", "tenure", "vehicle", "workclass", "year", "yrs"),
    ]
)
"""Words in names of columns that an outsider may know."""
