"""The metrics of time: a clock, how long a step takes, how much is done in a second. They tell nothing of learning."""

from __future__ import annotations

from stabtree.metrics.metric import Metric, names, trained

TIME_METRICS: tuple[Metric, ...] = (
    Metric(
        "wall_time",
        "wall-clock time in seconds, since the start of the run or whenever the clock began",
        names(
            "walltime _runtime _timestamp time_time_elapsed time_elapsed elapsed elapsed_s elapsed_sec "
            "elapsed_secs elapsed_seconds elapsed_time_s elapsed_time_sec wall_clock wallclock wall_clock_time "
            "wallclock_time wallclock_seconds wall_clock_seconds wall_time_s wall_time_sec wall_seconds time_total_s "
            "total_time_s total_time time_total time_total_time time_since_start seconds_since_start train_wall"
        ),
        log="wall_time: time.time(), at every step",
    ),
    Metric(
        "throughput",
        "steps, samples or tokens in a second",
        trained(
            "steps_per_second train_speed(iter_s) steps_per_sec steps_s step_s it_s its_s iter_s iters_s iters_per_sec "
            "iterations_per_second it_per_sec its_per_sec tokens_per_second tokens_per_sec tokens_sec tokens_s tok_s "
            "tok_sec toks_s tok_per_sec toks_per_sec samples_per_second samples_per_sec samples_sec samples_s "
            "sample_per_sec examples_per_second examples_per_sec images_per_second images_per_sec imgs_per_sec "
            "img_sec img_s sequences_per_second throughput perf_throughput throughput_tokens_per_sec "
            "throughput_samples_per_sec throughput_batches_per_sec throughput_device_tokens_per_sec time_fps "
            "fps wps sps charts_sps tokens_per_second_per_gpu tokens_per_sec_per_gpu tgs tflops tflops_per_gpu"
        ),
        log="throughput: steps or tokens in a second, at every step",
    ),
    Metric(
        "step_time",
        "time that one step takes",
        trained(
            "step_time time_per_step perf_time_per_step seconds_per_step sec_per_step secs_per_step s_per_step "
            "step_duration step_time_s step_time_sec step_time_ms step_ms ms_per_step iter_time iteration_time "
            "time_per_iteration time_per_iter seconds_per_iteration sec_per_iter s_it iter_time_ms batch_time dt dt_ms "
            "elapsed_time_per_iteration_(ms) elapsed_time_per_iteration_(s) elapsed_time_per_iteration timing_s_step "
            "timing_step train_step_timing"
        ),
        log="step_time: seconds a step, at every step",
    ),
)
TIMES = frozenset(metric.name for metric in TIME_METRICS)
