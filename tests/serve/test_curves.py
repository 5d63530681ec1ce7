"""Curves of the losses through the server, against the losses themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nearkin import losses, weights
from nearkin.serve.curves import listed


def test_every_loss_is_listed_with_sliders_it_accepts(client: Any) -> None:
    found = client.get("/api/losses").json()["losses"]
    assert [entry["name"] for entry in found] == [name for name in losses.names() if losses.LOSSES[name].name == name]
    for entry in found:
        proxy = {"classes": 10, "dim": 8} if entry["proxies"] else {}
        for setting in entry["settings"]:
            tried = setting.get("options") or [setting["low"], setting["value"], setting["high"]]
            if "low" in setting:
                assert setting["low"] <= setting["value"] <= setting["high"] and setting["step"] > 0
            for value in tried:
                try:
                    losses.create(entry["name"], **{setting["name"]: value}, **proxy)
                except ValueError as error:  # only settings that must fit each other may be refused at an end
                    assert setting["name"] in str(error)


def test_a_curve_is_that_of_the_loss(client: Any) -> None:
    answer = client.get("/api/curve", params={"loss": "ranked_list", "settings": json.dumps({"margin": 0.8})}).json()
    wanted = weights.curve(losses.create("ranked_list", margin=0.8).double(), points=61)
    assert answer["similarity"] == pytest.approx(wanted.similarity.tolist(), abs=1e-6)
    assert answer["positive"] == pytest.approx(wanted.positive.tolist(), abs=1e-6)
    assert answer["negative"] == pytest.approx(wanted.negative.tolist(), abs=1e-6)
    assert answer != client.get("/api/curve", params={"loss": "ranked_list"}).json()


WRONG = [
    ({"loss": "ranked_lis"}, "did you mean 'ranked_list'?"),
    ({"loss": "ranked_list", "settings": '{"margn": 1}'}, "did you mean 'margin'?"),
    ({"loss": "ranked_list", "settings": '{"margin": "x"}'}, "margin must be"),
    ({"loss": "ranked_list", "settings": '{"margin": -1}'}, "margin must be"),
    ({"loss": "ranked_list", "settings": "[1]"}, "must be a JSON object"),
    ({"loss": "ranked_list", "settings": "{"}, "must be a JSON object"),
    ({"loss": "arcface", "settings": '{"classes": 100000}'}, "is not known"),
    ({"loss": "histogram", "settings": '{"bins": 1000000000}'}, "bins must be at most"),
    ({}, "loss is not as it must be"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_wrong_settings_are_sentences(client: Any, given: dict[str, str], sentence: str) -> None:
    answer = client.get("/api/curve", params=given)
    assert answer.status_code == 422 and sentence in answer.json()["error"]


def test_what_a_loss_does_is_plain_text() -> None:
    assert all(entry["about"] and "`" not in entry["about"] for entry in listed())
