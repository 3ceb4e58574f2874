"""Where tables come from, told by what is written of them alone."""

import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile, UpstreamAsset, require_partitioned


def of_partition(partition_key):
    return pd.DataFrame()


@pytest.mark.parametrize(
    "source",
    [
        TableFile("people-{partition_key}.csv"),
        SqlQuery("SELECT * FROM people WHERE year = :partition_key", "URL"),
        SqlQuery("SELECT * FROM people WHERE note <> 'it''s' AND year = CAST(:partition_key AS INT) -- a year", "URL"),
        SqlQuery("SELECT * FROM people WHERE \"it's\" = :partition_key AND note = 'a'", "URL"),
        UpstreamAsset("people"),
        of_partition,
    ],
)
def test_a_source_with_partitions_is_one_that_depends_on_the_key(source):
    require_partitioned("source", source)


@pytest.mark.parametrize(
    "source",
    [
        TableFile("people.csv"),
        SqlQuery("SELECT * FROM people", "URL"),
        SqlQuery("SELECT * FROM people -- WHERE year = :partition_key", "URL"),
        SqlQuery("SELECT * FROM people /* :partition_key */ WHERE note = ':partition_key'", "URL"),
        SqlQuery("SELECT partition_key::text FROM people WHERE a = \\:partition_key", "URL"),
        SqlQuery("SELECT * FROM people WHERE a = :partition_keys", "URL"),
        lambda: pd.DataFrame(),
        dict,
    ],
)
def test_one_that_gives_the_whole_table_for_each_key_is_refused(source):
    with pytest.raises(InvalidSettingError, match="the whole table would be released under every key"):
        require_partitioned("source", source)
