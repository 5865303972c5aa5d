"""The server does what its description says."""

import pytest

from server.described import disagreements


@pytest.mark.deep
@pytest.mark.rule("http.nearly")
@pytest.mark.filterwarnings("ignore")
def test_what_fits_the_description_is_accepted_and_nothing_else():
    wrong, made = disagreements(2, phases=("fuzzing", "stateful"))
    assert wrong == []
    assert made > 100
