"""The order of the candidates for the training loss."""

from __future__ import annotations

import pytest

from stabtree.metrics.role import CLOSE, Sighting, describe_name, rank


def seen(name: str, logged: int = 100, alias: int | None = None, *, moves: bool = True) -> Sighting:
    """What is known of a column."""
    return Sighting(name, describe_name(name), alias, logged, moves)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (seen("aux_loss_x"), seen("loss_overall", moves=False), "constant"),
        (seen("seg_loss"), seen("loss_overall", logged=10), "which has far more values"),
        (seen("train_loss_epoch", alias=40), seen("train_loss_step", alias=3), "of one batch"),
        (seen("loss", alias=1), seen("loss_overall"), ""),
    ],
)
def test_evidence_outweighs_the_name(first: Sighting, second: Sighting, why: str) -> None:
    """The one that moves, is logged often, or is a mean comes first; the other says why it lost."""
    ranking = rank([second, first])
    assert [one.column for one in ranking.candidates] == [first.name, second.name]
    assert ranking.candidates[1].why == why
    assert ranking.margin > 0


def test_a_classifier_comes_after_two_adversaries() -> None:
    """Beside a generator and a discriminator it is another model's loss; what compares with the input is theirs."""
    names = ("classifier_loss", "Generator_loss", "Discriminator_loss", "cycle_loss")
    ranked = [one.column for one in rank([seen(name) for name in names]).candidates]
    assert ranked == ["cycle_loss", "Generator_loss", "Discriminator_loss", "classifier_loss"]


def test_two_parts_are_close_and_a_total_is_not() -> None:
    """The margin says how sure the choice is; one candidate alone leaves no doubt."""
    assert rank([seen("box_loss"), seen("cls_loss")]).margin < CLOSE
    assert rank([seen("total_loss_x"), seen("cls_loss")]).margin >= CLOSE
    assert rank([seen("cls_loss")]).margin >= CLOSE
