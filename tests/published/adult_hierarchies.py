"""Hierarchies for UCI Adult, as those that come with ARX's Adult example, and the marks of ARX with them.

The trees group values as ARX's do: ages in bands of 5, 10 and 20 from 1; one spelling of Europe apart; education by its
number. The figures of ARX's local recoding on 30,162 complete rows are those of ``docs/design/mondrian.md``, section
"Marks"; which hierarchies were behind them is not recorded there. With these, the engine comes within 1 % of them.
"""

from privacy_assets.columns.hierarchy import Hierarchy

# Loss (GCP) by k.
ARX_LOSSES = {2: 0.0226, 5: 0.0540, 10: 0.0786, 25: 0.1172, 50: 0.1523}

WORK = {
    "non-government": ["Private", "Self-emp-not-inc", "Self-emp-inc"],
    "government": ["Federal-gov", "Local-gov", "State-gov"],
    "unemployed": ["Without-pay", "Never-worked"],
}
MARRIAGE = {
    "spouse present": ["Married-civ-spouse", "Married-AF-spouse"],
    "spouse not present": ["Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent"],
}
OCCUPATION = {
    "technical": ["Tech-support", "Craft-repair", "Prof-specialty", "Machine-op-inspct"],
    "nontechnical": ["Sales", "Exec-managerial", "Handlers-cleaners"],
    "other": [
        "Other-service",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
    ],
}
EDUCATION = {
    "primary": {"primary school": [1, 2, 3]},
    "secondary": {"high school": [4, 5, 6, 7, 8, 9]},
    "higher": {"undergraduate": [10, 13], "professional": [11, 12, 15], "graduate": [14, 16]},
}
COUNTRIES = {
    "Asia": "Cambodia India Japan China Iran Philippines Vietnam Laos Taiwan Thailand Hong",
    "Europe": "Germany Greece Italy Poland Portugal Ireland France Hungary Scotland Yugoslavia Holand-Netherlands",
    "Europe, other spelling": "England",
    "South America": "Ecuador Columbia Nicaragua Trinadad&Tobago Peru",
    "Africa": "South",
    "North America": "United-States Puerto-Rico Canada Outlying-US(Guam-USVI-etc) Cuba Honduras Jamaica Mexico "
    "Dominican-Republic Haiti Guatemala El-Salvador",
}
ADULT = {
    "age": Hierarchy.intervals([5, 10, 20], origin=1),
    "workclass": Hierarchy.from_mapping(WORK),
    "education_num": Hierarchy.from_mapping(EDUCATION),
    "marital_status": Hierarchy.from_mapping(MARRIAGE),
    "occupation": Hierarchy.from_mapping(OCCUPATION),
    "race": Hierarchy.from_mapping({"*": ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]}),
    "sex": Hierarchy.from_mapping({"*": ["Male", "Female"]}),
    "native_country": Hierarchy.from_mapping({area: names.split() for area, names in COUNTRIES.items()}),
}
