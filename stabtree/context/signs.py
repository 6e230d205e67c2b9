"""The columns that only one kind of training logs, and the words by which configurations name it."""

from __future__ import annotations

from typing import NamedTuple

from stabtree.context import model
from stabtree.metrics.metric import names


class Sign(NamedTuple):
    """What shows a task.

    Attributes:
        task: the task.
        algorithm: the algorithm, where the sign shows it too.
        marks: names of columns, or parts of names, that must all be there; one mark of several is enough.
    """

    task: str
    algorithm: str
    marks: tuple[str, ...]


# In this order: what is special comes before what others log as well. A reward model beside a language model logs
# tokens, a detector accuracies, and a critic a mean squared error.
SIGNS_OF_REWARDS = (
    Sign(
        model.GRPO,
        "grpo",
        (
            "frac_reward_zero_std",
            "completions_mean_length reward",
            "completion_length reward_std",
            "completions_clipped_ratio",
        ),
    ),
    Sign(model.PREFERENCE, "orpo", ("log_odds_ratio log_odds_chosen",)),
    Sign(model.PREFERENCE, "kto", ("logps_chosen kl",)),
    Sign(
        model.PREFERENCE,
        "dpo",
        ("rewards_chosen rewards_rejected logps_chosen", "rewards_margins rewards_accuracies", "chosen_logps"),
    ),
    Sign(model.PREFERENCE, "reward-model", ("min_reward max_reward margin", "chosen_reward reject_reward")),
    Sign(
        model.ON_POLICY,
        "ppo",
        (
            *("objective_rlhf_reward", "actor_ppo_kl critic_vf_loss", "clip_fraction approx_kl", "clipfrac"),
            *("policy_gradient_loss clip_range", "ppo_loss", "loss_clip loss_vf"),
        ),
    ),
    Sign(model.GRPO, "grpo", ("actor_pg_loss response_length_mean", "grpo_loss")),
    Sign(
        model.ON_POLICY,
        "",
        (
            *("approx_kl", "approxkl", "policy_gradient_loss", "explained_variance value_loss", "surrogate_loss"),
            *("policy_loss value_loss entropy", "policy_loss value_loss entropy_loss", "reinforce_loss"),
            *("average_policy_std", "explained_variance mean_kl", "explained_variance average_return"),
        ),
    ),
    Sign(
        model.OFF_POLICY,
        "sac",
        ("ent_coef critic_loss", "ent_coef_loss", "alpha_loss critic_loss", "alpha_loss qf1_loss", "alpha_loss q_loss"),
    ),
    Sign(model.OFF_POLICY, "dqn", ("exploration_rate loss", "td_loss q_values")),
    Sign(
        model.OFF_POLICY,
        "",
        (
            *("qf1_loss", "qf_loss", "q1_loss", "q_values", "td_error", "mean_q", "exploration_rate"),
            *("epsilon reward", "epsilon score", "epsilon return", "replay_buffer_size"),
        ),
    ),
)
SIGNS = (
    Sign(
        model.GAN,
        "",
        (
            *("d_loss g_loss", "loss_d loss_g", "disc_loss gen_loss", "discriminator_loss generator_loss", "errd errg"),
            *("loss_disc loss_gen", "err_d err_g", "lossd lossg", "d_real d_fake", "loss_discriminator loss_generator"),
            *("cycle_a cycle_b", "cycled_a", "cycled_b", "d_a g_a"),
        ),
    ),
    Sign(
        model.DIFFUSION,
        "",
        (
            *("diffusion_loss", "loss_diffusion", "denoising_loss", "loss_simple", "loss_q0", "mse_q0", "ddpm_loss"),
            *("noise_pred_loss", "noise_loss", "flow_matching_loss", "score_matching_loss"),
        ),
    ),
    Sign(model.CTC, "", ("ctc_loss", "loss_ctc", "ctc", "cer_ctc", "wer_ctc")),
    Sign(
        model.CONTRASTIVE,
        "",
        (
            *("contrastive_loss", "loss_contrastive", "infonce", "info_nce", "nt_xent", "ntxent", "simclr_loss"),
            *("itc_loss", "loss_itc", "triplet_loss", "logit_scale"),
        ),
    ),
    Sign(
        model.SEGMENTATION,
        "",
        (
            *("seg_loss", "loss_mask", "mask_loss", "segm_ap", "miou", "mean_iou", "dice", "dice_loss", "pixel_acc"),
            *("pixel_accuracy", "mask_iou", "iou_score", "jaccard"),
        ),
    ),
    Sign(
        model.DETECTION,
        "",
        (
            *("map50", "map_50", "bbox_ap", "bbox_map", "loss_bbox", "bbox_loss", "box_loss", "loss_giou", "giou_loss"),
            *("loss_box_reg", "loss_rpn_cls", "rpn_cls_loss", "loss_rpn_loc", "obj_loss"),
            *("conf_loss loc_loss", "loss_conf loss_loc", "class_error cardinality_error"),
        ),
    ),
    Sign(model.SEGMENTATION, "", ("iou",)),
    Sign(
        model.LANGUAGE,
        "",
        names(
            "perplexity ppl num_tokens ntokens num_input_tokens_seen mean_token_accuracy token_accuracy lm_loss"
            " mlm_loss val_bpb bpb bpc tokens_per_second tokens_per_sec tok_s tok_sec tokens_seen consumed_tokens bleu"
            " rouge rouge1 rougel tokens_per_second_per_gpu"
        ),
    ),
)
TAUGHT = (
    *("byol_loss", "loss_byol", "dino_loss", "loss_dino", "ibot_loss", "loss_ibot", "teacher_momentum"),
    *("momentum_teacher", "teacher_tau", "tau_teacher", "ema_tau", "tau_ema"),
)
"""What is logged where a student learns to predict a teacher that is a moving average of itself."""
CLASSES = (
    *("accuracy", "acc", "top1", "top5", "acc1", "acc5", "acc_1", "acc_5", "top_1", "top_5", "prec1", "prec_1"),
    *("f1", "macro_f1", "auc", "auroc", "precision recall", "balanced_accuracy"),
)
"""What a classifier logs, and much else besides: a sign where nothing speaks for another task."""
PLAIN = frozenset(
    names(
        "train training val valid validation test eval evaluation dev heldout epoch step batch iter mean avg average"
        " running best final overall global total per sample at k macro micro weighted balanced class cls score metric"
        " metrics chart charts log logs model accuracy acc acc1 acc5 prec prec1 precision recall f1 auc auroc roc top"
        " top1 top5 categorical sparse binary"
    )
)
"""The words of an accuracy that is no more than that; any other word says that something else is right or wrong."""
NUMBERS = (
    *("mse", "rmse", "mae", "mape", "smape", "nse", "r2", "psnr", "spearman", "pearson"),
    *("pde", "ode", "pinn", "residual", "residuals", "l2_rel", "rel_l2", "l2_error", "physics"),
)
"""Errors of numbers, and the terms of equations that are solved."""
NO_CLASSES = (*NUMBERS, "smoothl1", "smooth_l1", "l1_loss", "huber")
"""What no classifier logs; the last ones are the errors of boxes and of pictures too."""

# A configuration's words for a task -> task, algorithm; in this order.
WORDS = (
    ("grpo dapo rloo gspo", model.GRPO, ""),
    ("dpo kto orpo simpo cpo ipo", model.PREFERENCE, ""),
    ("rm preference", model.PREFERENCE, "reward-model"),
    ("ppo a2c a3c trpo reinforce impala", model.ON_POLICY, ""),
    ("dqn ddqn rainbow sac td3 ddpg cql iql", model.OFF_POLICY, ""),
    ("rl reinforcement", model.REINFORCEMENT, ""),
    ("sft causal lm language token char seq2seq translation summarization mlm", model.LANGUAGE, ""),
    ("segment segmentation", model.SEGMENTATION, ""),
    ("detect detection", model.DETECTION, ""),
    ("classify classification classifier cls", model.CLASSIFICATION, ""),
    ("regression regress", model.REGRESSION, ""),
    ("diffusion", model.DIFFUSION, ""),
    ("gan", model.GAN, ""),
    ("ctc", model.CTC, ""),
    ("contrastive", model.CONTRASTIVE, ""),
)
