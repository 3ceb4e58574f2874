"""The generated ratings: what the tutorial relies on."""

from privacy_assets.examples.ratings import make_ratings


def test_ratings_are_like_those_of_people():
    table = make_ratings(200, 50)
    assert table.equals(make_ratings(200, 50))
    assert not table.equals(make_ratings(200, 50, seed=1))
    rated = table.groupby("customer")
    assert len(rated) == 200
    assert rated.size().between(4, 25).all()
    assert not table.duplicated(["customer", "movie"]).any()
    assert (rated["pseudonym"].nunique() == 1).all()
    assert table["pseudonym"].nunique() == 200
    assert set(table["stars"]) == {1, 2, 3, 4, 5}
    assert ((rated["date"].max() - rated["date"].min()).dt.days < 365).all()
    popular = table["movie"].value_counts()
    assert popular.get("m000") > 2 * popular.get("m049")
