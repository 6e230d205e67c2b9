"""What a column is taken for that the table of metrics doesn't know."""

from __future__ import annotations

import pytest

from stabtree.metrics.metric import Role
from stabtree.metrics.names import Names
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import words


@pytest.mark.parametrize(
    ("name", "kind", "order"),
    [
        ("train_loss_local", "", 1),
        ("LossAfter", "", 1),
        ("Loss/total_loss", "", 0),
        ("xent", "", 2),
        ("CrossEntropy", "", 2),
        ("train/error", "", 2),
        ("recon_loss", "", 2),
        ("kl_loss", "", 6),
        ("Qloss", "value", 3),
        ("train/critic_loss", "value", 3),
        ("LossPi", "policy", 4),
        ("train/policy_gradient_loss", "policy", 4),
        ("Generator_loss_0", "adversarial", 3),
        ("D_loss", "adversarial", 4),
        ("G_A", "adversarial", 3),
    ],
)
def test_losses_by_the_words_of_their_names(name: str, kind: str, order: int) -> None:
    """Whatever the spelling, with the kind of those that move by nature, and the total before the parts."""
    found = describe_name(name)
    assert (found.loss, found.kind, found.order, found.held_out) == (True, kind, order, False)


@pytest.mark.parametrize("name", ["eval_wikitext_loss", "validation_loss_nats_per_byte", "test/mse"])
def test_held_out_losses_are_told_apart(name: str) -> None:
    """A loss on held-out data is no training loss."""
    found = describe_name(name)
    assert (found.role, found.loss) == (Role.HELD_OUT_LOSS, True)


@pytest.mark.parametrize("name", ["AverageEpRet", "env/0/reward", "eval/return", "Train_AverageReturn", "rewards"])
def test_rewards_by_the_words_of_their_names(name: str) -> None:
    """Rewards and returns of any spelling."""
    assert describe_name(name).role is Role.REWARD


@pytest.mark.parametrize(
    "name",
    [
        *("val_acc", "loss_weight", "loss_ratio", "best_loss", "train/entropy_loss", "judge_err", "total_cost"),
        *("reward_std", "min_reward", "perplexity", "loss_time", "objective/kl", "accuracy", "value", "x" * 5000),
    ],
)
def test_what_is_no_loss_is_none(name: str) -> None:
    """Ratios, counts, times, accuracies, perplexities, spreads, money: neither a loss nor a reward."""
    found = describe_name(name)
    assert not found.loss
    assert found.role is not Role.REWARD


ROLES = {
    Role.COUNTER: "step num_tokens train/n_updates tokens_seen steps_done",
    Role.CLOCK: "data_time eta_seconds updt_s time/save_checkpoint timing_s/reward samples_per_second GPU_mem data mfu",
    Role.SETTING: "FOCAL_LOSS_ALPHA LOSS_WEIGHT max_grad_norm log_interval ent_coef clip_range",
    Role.GRADIENT: "grdn gnorm GradNorm grad_norm_max train/gradient_norm_total grad/layer1",
    Role.NORM: "param_norm spectral_norm h_norm_mean",
    Role.RATE: "lr-Adam-1 lr/pg2 x_lr1 actor_learning_rate",
    Role.SCALE: "grad_scale",
    Role.REWARD: "rollout/return env_runners/episode_return_mean critic/score/mean EpRewMean rewards/fn/mean",
    Role.QUALITY: "mIoU val_dice BLEU class_error eval_wer psnr fid rewards/accuracies pass_rate val_score mean_dice",
    Role.VALUE: "critic_loss qf1_loss ExplainedVariance critic/advantages/mean v_loss",
    Role.POLICY: "pg_loss clipfrac optim/kl_sample policy_loss",
    Role.ENTROPY: "actor/entropy entropy_loss",
    Role.PART: "kl_loss alpha_loss aux_loss",
    Role.LOSS: "tot_loss initial_theta_loss Cost global_loss loss_iou Generator_loss total",
    Role.HELD_OUT_LOSS: "train/valid_loss evaluation_loss_vs_iterations val_bpb",
    Role.OTHER: "reward_std best_loss min_reward ep_len_mean turns_per_episode stage_2",
}


@pytest.mark.parametrize("role", ROLES)
def test_roles_by_the_words_of_a_name(role: Role) -> None:
    """The head of a name decides, and then the words in it that name a measure."""
    found = {name: describe_name(name).role for name in ROLES[role].split()}
    assert set(found.values()) == {role}, found


@pytest.mark.parametrize(("name", "better"), [("eval_wer", "lower"), ("class_error", "lower"), ("val_mAP", "higher")])
def test_the_direction_of_a_quality(name: str, better: str) -> None:
    """Errors and rates of errors fall where a run does well."""
    assert describe_name(name).better == better


def test_known_metrics_in_camel_case() -> None:
    """A known name is known in any spelling of its words."""
    names = Names()
    known = {"TrainLoss": "loss", "ValLoss": "eval_loss", "train_losses": "loss", "AverageReturn": "reward"}
    assert {name: names.metric(name) for name in known} == known
    assert names.role("TimestepsSoFar") == "step"
    assert words("WGANLoss") == ["wgan", "loss"]
