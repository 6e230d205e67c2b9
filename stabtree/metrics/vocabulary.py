"""The words of names by which a column is recognised that the table of metrics doesn't know."""

from __future__ import annotations

from stabtree.metrics.metric import names


def _words(text: str) -> frozenset[str]:
    return frozenset(names(text))


TOTAL = _words("total overall sum all combined full joint")
TRAIN = _words("train training trn tr")
HELD_OUT = _words("val valid validation eval evaluation evaluate test testing dev heldout holdout")
# Words that say how a measure was averaged or where it was logged, not what it is.
FILLER = TRAIN | _words(
    "mean avg average epoch step batch iter iteration running local global raw reduced per token byte nats bits "
    "current cur model net network log logs metrics scalar scalars main after final smoothed smooth value loss"
)

# How a loss was averaged.
BATCHES = _words("step batch iter iteration inner current cur")
MEANS = _words("epoch mean avg average running global smoothed smooth")

LOSS = _words("nll xent xentropy crossentropy ce bce mse rmse mae huber smoothl1 elbo nelbo logloss hinge bpb bpc bpd")
LOSS_PAIRS = frozenset((("cross", "entropy"), ("smooth", "l1"), ("log", "likelihood")))
# Measures that are trained on where they are called a loss.
TRAINED_MEASURES = _words("kl iou ssim")
# What is logged beside a loss under its name, and what is no loss at all.
NO_LOSS = _words(
    "acc accuracy ratio rate lr ppl perplexity time sec seconds duration count counts num n scale scaling weight "
    "weights lambda norm std stdev stddev var variance min max best lowest delta diff change improvement improved "
    "grad gradients threshold patience f1 auc iou map psnr ssim score percent pct fraction frac steps samples memory "
    "eta speed size prev previous id idx index name type len length target kl"
)
AUXILIARY = _words(
    "kld reg regularization aux auxiliary l2 decay commitment penalty gp consistency idt identity z before moe coef "
    "coeff coefficient alpha temperature"
)
PLAYERS = _words("g gen generator netg gan adv adversarial cyc cycle cycled d dis disc discriminator netd")
# Terms of a generator that compare with the input: they fall where it learns.
MIRRORED = _words("cyc cycle cycled idt identity l1 rec recon reconstruction mel")
AGAINST = _words("d dis disc discriminator netd")
VALUES = _words("critic value vf v td q qf qf1 qf2 q1 q2 qvalue bellman baseline")
POLICIES = _words("policy pi actor pg surrogate surr")
ERROR = _words("error err cost objective criterion")
# Words beside an error that is trained on, or a cost: any other is a rate, or money.
TRAINED_ON = TRAIN | HELD_OUT | _words("mean avg average reconstruction recon squared absolute td prediction")

REWARD = _words("reward rewards rew return returns")
# What a setting does to rewards, which is nothing that was earned.
ON_REWARDS = _words("multiplier normalize normalise clip discount shaping model")
# Rewards of parts of the data, which are no outcome: of DPO's answers, and their difference.
COMPARED = _words("chosen rejected margin margins")
EPISODE = _words("ep episode episodic episodes")
REWARD_FILLER = (
    EPISODE
    | TRAIN
    | HELD_OUT
    | TOTAL
    | _words("mean avg average env rollout charts runners sampler results step per running smoothed time r")
)
SCORE = _words("score scores mean avg average episode ep game team player agent total")
# Beside what a score, and the column `r` of a monitor's file, is what was earned in an episode.
# Words of a name that counts or flags what is not finite, and those of one that counts the steps with such values.
NOT_FINITE = _words("nan nans inf infs nonfinite infinite")
STEPS_COUNTED = _words("step steps iteration iterations batch batches skipped skips total time")
EPISODES = _words("epsilon eps episode episodes ep_len episode_length l")

HIGHER = _words(
    "acc accuracy accuracies top prec f1 fscore auc auroc auprc ap aps apm apl map iou miou biou dice dsc bleu rouge "
    "rougel meteor chrf cider psnr ssim precision recall sensitivity specificity r2 corr correlation spearman pearson "
    "kendall kappa mcc ndcg mrr hits jaccard ic exact em success score scores similarity pesq stoi sdr sdri sisdr sisnr"
)
ONE_SIDED = _words("prec precision recall sensitivity specificity")
PERPLEXITY = _words("ppl perplexity perplexities")
LOWER = PERPLEXITY | _words("wer cer ter eer fid kid lpips mape epe negative negatives positives err errors")
SQUARED = _words("square squared sq")
WON = _words("success win won pass solve solved hit")

GRADIENT = _words("grad grads gradient gradients gnorm gradnorm grdn")
# Words in the name of the norm of the whole gradient; any other names a layer.
WHOLE_GRADIENT = FILLER | TOTAL | _words("norm l2 p pre preclip before unclipped unscaled optim optimizer actor policy")
AFTER_CLIPPING = _words("clipped clip post after")
LIMITS = _words("clip clipping threshold accumulation accum steps")
NORM = _words("norm norms")
SCALE = _words("scale scaler scaling")
RATE_PAIRS = frozenset((("learning", "rate"), ("learning", "rates")))
CLOCK = _words(
    "time times sec secs second seconds ms millis duration eta runtime elapsed timestamp clock speed throughput fps "
    "sps wps tps tgs tflops flops mfu hfu memory mem vram gb mib gib mb usd gpu cpu ram date hours minutes hrs mins"
)
WAITS = _words("data comp")  # a column of this very name: how long loading and computing took
TIMES = _words("time timing times timings")  # the first part of `time/save_checkpoint`
TIMED = _words("timing timings profiling runtime eta elapsed memory gpu cpu mfu tflops fps throughput")
CLOCK_PAIRS = frozenset(
    (("time", "taken"), ("step", "avg"), ("it", "s"), ("tok", "s"), ("per", "second"), ("per", "sec"))
)
SETTING = _words(
    "seed alpha beta betas gamma lambda coef coeff coefficient coefficients weight weights threshold thresh patience "
    "interval tau momentum mom wd decay dropout range eps epsilon version kernel stride warmup budget temperature size"
)
SPREAD = _words("std stdev stddev var variance min max best lowest diff delta len length lengths")
NUMBER = _words("num nums n nb number count counts counter")
COUNTED = _words(
    "steps iter iters iteration iterations epochs episode episodes tokens samples batches seqs sequences images frames "
    "updates update idx index seen consumed processed done trajs trajectories turns calls parameters params"
)
COUNTED_ALONE = (["step"], ["epoch"], ["batch"], ["iter"], ["iteration"])

ENTROPY = _words("entropy ent")
POLICY_TERMS = _words("kl approxkl clipfrac clip clipped importance logp logprob logprobs policy pi actor surrogate")
VALUE_TERMS = _words(
    "critic vf values vpred valuepred qf qf1 qf2 q1 q2 qvalue qvalues advantage advantages adv explained baseline"
)

# Beside a `total` that is a loss, as detectors print it.
BOXES = _words("box obj cls giou iou conf xy wh dfl rpn rpn_cls mask")
# Errors that are measured beside the loss of a regression, or are it.
DISTANCES = _words("mse mae rmse")
# The whole loss in bits.
BITS = _words("bpb bpc bpd")
# Words that say which term of a loss it is, rather than of which data.
TERMS = LOSS | MIRRORED | BOXES | AUXILIARY | POLICIES | PLAYERS | VALUES | DISTANCES
