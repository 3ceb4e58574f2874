"""A generated table like the ratings that Netflix published in 2006: people, movies, stars and days [1]_.

References
----------
.. [1] A. Narayanan, V. Shmatikov (2008), "Robust de-anonymization of large sparse datasets", IEEE Symposium on
   Security and Privacy, 111-125, doi:10.1109/SP.2008.33.
"""

import numpy as np
import pandas as pd


def make_ratings(n_people: int = 1_000, n_movies: int = 500, seed: int = 0) -> pd.DataFrame:
    """Make ratings: everybody rates 4 movies or more, popular ones more often, within a year of their own.

    Returns
    -------
    DataFrame
        `customer`, `pseudonym` (a random number of each customer), `movie`, `stars` (1 to 5) and `date`.
    """
    random = np.random.default_rng(seed)
    n_rated = np.minimum(3 + random.geometric(1 / 26, n_people), n_movies // 2)
    popularity = 1 / np.arange(10, 10 + n_movies)
    # The movies with the greatest scores are drawn without replacement, by popularity.
    scores = np.log(random.random((n_people, n_movies))) / popularity
    liked, generous = random.normal(3.6, 0.5, n_movies), random.normal(0, 0.4, n_people)
    customer = np.repeat(np.arange(n_people), n_rated)
    movie = np.concatenate([np.argsort(-own)[:n] for own, n in zip(scores, n_rated, strict=True)])
    stars = np.rint(liked[movie] + generous[customer] + random.normal(0, 0.9, len(movie))).clip(1, 5)
    first = random.integers(0, 4 * 365, n_people)
    days = first[customer] + random.integers(0, 365, len(movie))
    return pd.DataFrame(
        {
            "customer": customer,
            "pseudonym": [f"u{number:05}" for number in random.permutation(10 * n_people)[customer]],
            "movie": [f"m{number:03}" for number in movie],
            "stars": stars.astype("int64"),
            "date": pd.Timestamp("2000-01-01") + pd.to_timedelta(days, unit="D"),
        }
    )
