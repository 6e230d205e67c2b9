"""The metrics of reinforcement learning and fine-tuning, as TRL, axolotl, swift, verl, OpenRLHF and SB3 spell them.

Left out are names that mean another thing: `objective/kl` is a sum over the answer.
"""

from __future__ import annotations

from stabtree.metrics.metric import Metric, names, trained

RL_METRICS: tuple[Metric, ...] = (
    Metric(
        "reward",
        "mean reward or return of reinforcement learning",
        trained(
            "reward rewards_mean reward_mean mean_reward ep_rew_mean rollout_ep_rew_mean critic_rewards_mean "
            "critic_score_mean objective_rlhf_reward objective_scores env_reward_mean ppo_mean_scores "
            "average_reward_score rollout_raw_reward ep_rewmean eprewmean episode_reward_mean episode_return_mean "
            "env_runners_episode_return_mean episodic_return charts_episodic_return episode_return episode_reward "
            "average_return return_mean mean_return average_reward avg_reward mean_episode_reward "
            "mean_episode_return average_episode_reward env_all_reward_total average_ep_ret"
        ),
        log="reward: the mean reward of the step",
    ),
    Metric(
        "reward_function",
        "mean of one reward function of several, by its name: what TRL logs as rewards/NAME/mean",
        grouped=True,
        log="rewards/NAME/mean: the mean of each reward function",
    ),
    Metric(
        "reward_std",
        "standard deviation of the reward among the answers to one prompt",
        trained("reward_std rewards_std group_reward_std critic_rewards_std env_reward_std"),
        log="reward_std: the spread of the rewards among the answers to one prompt, mean over the prompts",
    ),
    Metric(
        "frac_reward_zero_std",
        "share of prompts whose answers all got the same reward, 0 to 1",
        trained("frac_reward_zero_std frac_zero_std zero_std_frac zero_advantage_frac"),
        log="frac_reward_zero_std: the share of prompts whose answers all got the same reward",
    ),
    Metric(
        "entropy",
        "mean entropy of the policy, nats per token or action",
        trained("entropy actor_entropy policy_entropy policy_entropy_avg ppo_policy_entropy mean_entropy entropy_mean"),
        log="entropy: the mean entropy of the policy's next-token distribution",
    ),
    Metric(
        "kl",
        "mean divergence of the policy from its reference, nats per token",
        trained("kl kl_mean mean_kl actor_kl_loss actor_reward_kl_penalty kl_divergence kl_div policy_kl"),
        log="kl: the mean divergence from the reference policy per token",
    ),
    Metric(
        "logp_diff",
        "mean absolute difference of log-probabilities between trainer and sampler",
        trained(
            "sampling_sampling_logp_difference_mean sampling_logp_difference_mean sampling_logp_difference "
            "logp_diff_mean rollout_corr_log_ppl_abs_diff train_rollout_logprob_abs_diff"
        ),
        log="logp_diff: the mean absolute difference of log-probabilities between trainer and sampler",
    ),
    Metric(
        "importance_ratio_min",
        "smallest importance ratio between trainer and sampler in the batch",
        trained(
            "sampling_importance_sampling_ratio_min importance_sampling_ratio_min rollout_corr_rollout_is_min "
            "mismatch_rollout_is_min"
        ),
        log="importance_ratio_min: the smallest importance ratio between trainer and sampler",
    ),
    Metric(
        "clip_ratio",
        "share of tokens or actions whose update the policy loss clips, 0 to 1",
        trained(
            "clip_ratio_region_mean clip_ratio actor_pg_clipfrac pg_clipfrac clip_fraction clipfrac ppo_clip_ratio "
            "policy_clipfrac_avg ppo_policy_clipfrac"
        ),
        log="clip_ratio: the share of tokens whose update is clipped",
    ),
    Metric(
        "approx_kl",
        "mean divergence of the policy from that of the last update, nats per token or action",
        trained(
            "approx_kl policy_approxkl policy_approxkl_avg approxkl old_approx_kl losses_approx_kl actor_ppo_kl ppo_kl "
            "ppo_policy_approxkl rllib_kl rllib_mean_kl_loss"
        ),
        log="approx_kl: the mean divergence of the policy from that of the last update",
    ),
    Metric(
        "value_loss",
        "error of the value function",
        trained("value_loss loss_value_avg losses_value_loss critic_vf_loss vf_loss ppo_loss_value rllib_vf_loss"),
        log="value_loss: the error of the value function",
    ),
    Metric(
        "entropy_loss",
        "entropy of the policy with its sign turned, as SB3 logs it, nats per action",
        trained("entropy_loss"),
        log="entropy_loss: the mean entropy of the policy, negative",
    ),
    Metric(
        "policy_std",
        "standard deviation of the actions of a Gaussian policy",
        ("train_std", "policy_std", "action_std", "policy_action_std", "mean_std"),
        log="policy_std: the standard deviation of the policy's actions",
    ),
    Metric(
        "preference_accuracy",
        "share of pairs whose chosen answer gets the higher reward, 0 to 1",
        trained("rewards_accuracies reward_accuracies preference_accuracy"),
        log="rewards/accuracies: the share of pairs whose chosen answer gets the higher reward",
    ),
    Metric(
        "preference_margin",
        "mean reward of the chosen answers less that of the rejected ones",
        trained("rewards_margins reward_margins preference_margin"),
        log="rewards/margins: the mean reward of the chosen answers less that of the rejected ones",
    ),
    Metric(
        "completion_length",
        "mean length of the sampled answers, in tokens",
        trained(
            "completions_mean_length completion_length mean_completion_length response_length_mean response_length "
            "mean_response_length rollout_response_len_mean"
        ),
        log="completion_length: the mean length of the answers in tokens",
    ),
    Metric(
        "completion_length_max",
        "longest of the sampled answers, in tokens",
        trained("completions_max_length response_length_max"),
        log="completion_length_max: the length of the longest answer in tokens",
    ),
    Metric(
        "clipped_ratio",
        "share of answers cut off at the longest allowed length, 0 to 1",
        trained("completions_clipped_ratio response_length_clip_ratio rollout_truncated_ratio truncated_ratio"),
        log="clipped_ratio: the share of answers that are cut off at the longest allowed length",
    ),
    Metric(
        "ebft_alignment",
        "EBFT: how well the answers' features match the reference's, up to 1",
        trained("ebft_alignment"),
        log="ebft/alignment",
    ),
    Metric(
        "ebft_diversity",
        "EBFT: how alike the answers to one prompt are; large means all the same",
        trained("ebft_diversity"),
        log="ebft/diversity",
    ),
    Metric("cfm_loss", "EBFT: feature-matching loss", trained("ebft_cfm_loss cfm_loss"), log="ebft/cfm_loss"),
    Metric(
        "token_accuracy",
        "share of target tokens predicted right in supervised fine-tuning, 0 to 1",
        trained("mean_token_accuracy token_accuracy token_acc"),
        log="token_accuracy: the share of target tokens that are predicted right",
    ),
    Metric(
        "gpu_memory",
        "peak memory of the GPU as axolotl logs it while it fine-tunes, GiB",
        names(
            "memory_max_alloc memory_max_allocated memory_max_allocated_(gib) memory_max_mem_allocated(gib) "
            "memory_max_mem_allocated"
        ),
        log="memory/max_alloc: torch.cuda.max_memory_allocated() / 2**30",
    ),
)
