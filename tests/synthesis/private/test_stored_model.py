"""A noisy model is the same after storage, and never draws values of another domain."""

import pickle

import pandas as pd
import pytest

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.synthesis.private.domain import PublicDomain
from privacy_assets.synthesis.private.mst import Mst
from privacy_assets.synthesis.private.stored_model import from_artifact, to_artifact
from tests.extras import NEEDS_DP
from tests.synthesis.private.test_domain import contract_of
from tests.synthesis.private.test_mst import CONTRACT, domain, records

pytestmark = NEEDS_DP


@pytest.mark.parametrize("given", [None, "sex"])
@pytest.mark.parametrize("columns", [["sex", "ward"], list(CONTRACT), ["sex", "dose"]])
def test_a_stored_model_draws_the_same_records(tmp_path, given, columns):
    public = PublicDomain.from_contract(contract_of(**{name: CONTRACT[name] for name in columns}))
    model = Mst(public, 1.0, 1e-6, given).fit(records(), charge=lambda rho: None)
    write_artifact(tmp_path / "model", to_artifact(model, "d" * 64, {"epsilon": 1.0}, {"original": "o"}))
    read = from_artifact(read_artifact(tmp_path / "model"), public)
    assert pickle.dumps(read.charges) == pickle.dumps(model.charges)
    assert (read.rho, read.n_records, read.epsilon, read.delta) == (model.rho, model.n_records, 1.0, 1e-6)
    pd.testing.assert_frame_equal(read.sample(seed=5), model.sample(seed=5))


def test_a_model_of_another_domain_is_refused():
    model = Mst(domain(), 1.0, 1e-6).fit(records(), charge=lambda rho: None)
    artifact = to_artifact(model, "d" * 64, {}, {})
    other = PublicDomain.from_contract(contract_of(**CONTRACT), bins=5)
    with pytest.raises(InvalidTableError, match=r"made with another contract or other bins"):
        from_artifact(artifact, other)
