"""The grammar of training logs: how numbers, names, prefixes, overflow lines and blocks are written.

Frameworks differ in punctuation, not in kind: a line names a step and some numbers. What follows is a table
of spellings; `parse` reads any line with it. Each pattern takes linear time for any line: what may repeat
without end is followed by something that it can't itself match. Lines that put a number before its name, or name
things in another language, are first spelled in the words of the grammar.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stabtree.loaders.tables.cells import AFTER, BEFORE, CALL
from stabtree.metrics.metric import Role
from stabtree.metrics.names import EPOCH, PHASE, RANK, RUN, STEP, UNKNOWN, Meaning, Names
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import MAX_NAME, is_time, normalize

# A longer line is no line of metrics: the rest is not read.
MAX_LINE = 20_000
# The longest key that a logger writes, with the words before it.
MAX_KEY = 120

# Stands for a number in a shape; and for one that says nothing of the training.
MASK, ASIDE = "\0", "\1"
# A number that is not part of a word, with its sign. The first character decides, so that a text is searched fast.
NUMBER = re.compile(
    r"([-+.0-9nNiI](?<![\w.@].)(?<![A-Za-z]-.)(?:"
    r"(?<=[0-9])[0-9]*+(?:(?<![0-9]{4})(?:,[0-9]{3}){1,8}+(?![0-9,]))?+(?:\.(?:#[A-Z]+[0-9]*|[0-9]*))?(?:[eE][-+]?[0-9]+)?"
    r"|(?<=\.)[0-9]+(?:[eE][-+]?[0-9]+)?"
    r"|(?<=[-+])(?:(?:[0-9]+(?:\.(?:#[A-Z]+[0-9]*|[0-9]*))?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    r"|(?:[nN][aA][nN]|[iI][nN][fF](?:inity)?)(?![A-Za-z_]))"
    r"|(?<=[nN])[aA][nN](?![A-Za-z_])|(?<=[iI])[nN][fF](?:inity|INITY)?(?![A-Za-z_])))"
)
# The name in front of a number: words with single blanks between, then `:`, `=`, `[` or a blank.
KEY = re.compile(
    r"(?P<name>[^\W\d][\w./()%+@\-]*(?: [^\W\d(][\w./()%+@\-]*| \([\w/%]+\)){0,6})(?P<quote>['\"’”]?)"
    r"(?P<sep>\s*[:=]\s*|\s*\[\s*|\s+)['\"‘“#]?(?:tensor\()?[\[(]*\s*$"
)

# What launchers and loggers put before the message: ranks, time stamps, levels, places in the source.
PREFIX = re.compile(
    r"\s*(?:(?:\d+\|[\w-]+ *\|(?= )"
    r"|\[(?!\d+/\d+\]|[^\]]*(?:[Ss]tep|[Ii]ter|[Ee]poch|[Bb]atch))(?:[^\]=]|rank=){0,120}\](?:<std\w+>)?:?"
    r"|\(\w+ pid=[^)]{0,80}\)|\d{4}-\d\d-\d\d[ T][\d:,.]+(?: [A-Z]{3,4}(?= \|))?|\d\d:\d\d:\d\d(?= \|)"
    r"|[IWE]\d{4} [\d:.]+ +\d+ [\w./-]+:\d+\]|\d\d[/-]\d\d \d\d:\d\d:\d\d|\([\w.]+:\d+\)"
    r"|(?:[\w.]++ ++- ++)?(?:DEBUG|INFO|WARNING)\b(?:\([\w.]{1,80}\)|:[\w.]{1,80}(?=:[^\s\d]))?:?"
    r"|(?:root|mmengine|Worker \d+)\b:?|d2\.[\w.]+|(?<!\| )\d{1,5}:(?= )|[-|*•](?=\s))\s*)*"
)
RANK_PREFIX = re.compile(
    r"^\s*(?:\[?(?:rank|default) ?(\d{1,6})\]?:|\[\d+,(\d{1,6})\]<std\w+>:|(\d{1,5}): (?=\S))"
    r"|\[rank[ =]?(\d{1,6})\]|\brank=(\d{1,6})[\],]",
    re.IGNORECASE,
)

# Marks what follows on the line as measured on held-out data, or on training data again.
EVALUATED = re.compile(
    r"(?:^|[\s|\[(])(?:(?P<held>valid(?:ation)?|val|eval(?:uation)?|test|dev)|train(?:_inner|ing)?)"
    r"(?:(?: set| results)?\s*[\]):|]|\s+-\s|\s+on\b|(?=\s+(?:epoch|step|iter)))",
    re.IGNORECASE,
)

# A line that says what the lines below it were measured on: `Eval begin...`, `Validation:`, `--- Training ---`.
_HEAD = (
    r"\W*(?:(?:epoch|step|iter\w*)\W*\0?\W*)?(?:(?:begin|start|run|perform)\w*\s+)?(?:the\s+)?(?:{})\b"
    r"(?:\s+(?:begin|start|on|set|data|result|phase|mode|model|metric|epoch|step|for|at|the|\0|/)\w*){{0,4}}\W*\0?\W*"
)
HEAD_HELD = re.compile(
    _HEAD.format("eval(?:uat(?:ion|ing|e))?|validat(?:ion|ing|e)|valid|val|test(?:ing)?"), re.IGNORECASE
)
HEAD_TRAIN = re.compile(_HEAD.format("train(?:ing)?"), re.IGNORECASE)

# A name that says so itself.
HELD_OUT = re.compile(r"(?<![^\W_])(?:v|valid(?:ation)?|val|eval(?:uation)?|test|dev)(?![^\W_])", re.IGNORECASE)

SIDE = re.compile(rf"{HELD_OUT.pattern}|train", re.IGNORECASE)

# What a model gets right, or earns.
QUALITY = re.compile(
    r"(?:acc(?:uracy)?|prec(?:ision)?|recall|f1|auc|auroc|(?<![a-z])m?ap|iou|dice|bleu|rouge|wer|cer|psnr|ssim|fid|score|reward|rew"
    r"|return|success|match|correct)s?(?![a-z])|(?<![a-z])top.?\d",
    re.IGNORECASE,
)

# The name of a group, which ends at its bracket.
GROUP = re.compile(r"[^\W\d]\w*$")

# What precedes the number of an epoch, or of a pass over held-out data: `Train: 3 [50/391]`.
PASS = re.compile(r"train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|eval(?:uation)?", re.IGNORECASE)

# What directly follows a number: a unit, a rate.
UNIT = re.compile(r"[^\W\d_]*(?:/[a-z]+)?%?")
# Counters of some trainers are rounded for people: `step:1K smpl:13K`, `2.5M`.
POWERS = {"K": 3, "k": 3, "M": 6, "B": 9}
# Names that a blank alone separates from a number: `v_loss 2.0e+00`, `acc 0.61 (0.58)`, not `after 0.5`.
WORD = re.compile(r"[^\W\d][\w./%@-]*")
_PREPOSITIONS = "at in to of for is was by with from after than over about took under until every per and or"
NO_NAMES = frozenset(_PREPOSITIONS.split())
ORDINALS = ("st", "nd", "rd", "th")
DATE = re.compile(r"-\d\d?-\d|:\d\d:\d")  # the rest of a date or of a time of day
SOURCES = (".py", ".cc", ".cpp", ".cu")  # `train.py:96` is where a line was printed
FRACTION = re.compile(r"[.eEnN]")
# The end of a bar of tqdm: what follows it on the line is another message.
BAR_END = re.compile(r"(?<=\d)/(?:\d+|\?)\s*\[[^\]<]{0,40}<[^\]]{0,400}\]")
# A bar of keras shows the mean of the epoch so far; one of tqdm where the run is.
KERAS_BAR = re.compile(r"(?<!\d)\d+/(?:\d+|Unknown)\s*(?:\[[=>.]+\]|[━─-]{5,})")
TQDM_BAR = re.compile(r"(?:\d%\||it/s|s/it|\?it)")
GLUED_EPOCH = re.compile(r"(?<![\w.])(\d+)epoch\b")
# `{'train_runtime': ..., 'train_loss': ...}` sums up a whole run; W&B quotes what it drops in a warning.
NO_ROW = re.compile(r"train_runtime|train_samples_per_second|\bStep\b.{0,80}[Dd]ropping |Dropping entry: ")

# A step that was skipped because its gradient was not finite, with the loss scale from then on.
OVERFLOW = re.compile(
    r"(?:overflow.{0,120}?(?:reducing (?:loss scale )?to|setting loss scale to:?)"
    r"|Reducing dynamic loss scale from \S{1,40} to)"
    r"\s+(?P<to>\0)"
    r"|overflow.{0,80}?Attempted loss scale: (?P<kept>\0), but hysteresis",
    re.IGNORECASE,
)
OVERFLOW_WORDS = ("verflow", "VERFLOW", "dynamic loss scale")
# Some trainers stop at the first NaN, and this line is their only message about it.
NAN_LOSS = re.compile(r"\bloss (?:became|is|was) (?:infinite or nan|nan|inf(?:inite)?)\b", re.IGNORECASE)
NAN_NORM = re.compile(r"grad norm is (?:nan|inf)", re.IGNORECASE)

# Source code that a trainer prints: assignments, calls and statements are no lines of a log.
CODE = re.compile(
    r"\s*(?:(?:def|class|return|import|from|if|elif|else|for|while|with|assert|raise|try|except|self|parser)\b(?!:?\s*[\d|])"
    r"|[@#]|\"\"\"|[fbr]{0,2}[\"'](?![\w/ .-]+[\"']\s*:)"
    r"|(?:await )?[\w.]+\(|[\w.\[\]]+(?:\s*:\s*[\w.\[\]]+)?\s+[-+*/]?=\s"
    r"|[\w.\[\]]+(?:, [\w.\[\]]+){1,8} = [^\W\d][\w.]*\((?![-\d]))"
)
# A part of a model as PyTorch prints it: `(conv1): Conv2d(3, 64, kernel_size=(7, 7))`.
MODULE = re.compile(r"\s*\([\w.-]{1,60}\):? ?(?:\d+ x )?[A-Z]\w*\(")
# But for a number that is printed with its name: `mIoU = 0.41`.
PRINTED = re.compile(r"\s*[\w./-]+\s+=\s+[-+]?(?:\.?\d|nan\b|inf\b)[^\s,;()]*\s*$", re.IGNORECASE)
STATEMENT = re.compile(r"(?:def \w+\(|class \w+[(:]|import \w|from [\w.]+ import )")

# Every line of metrics contains one of these.
ANCHOR = re.compile(
    r"loss|reward|return|score|episode|trl|tel:|step|iter|epoch|norm|overflow|[│┃]|\|.*\||\{|batch|nll|entropy"
    r"|num_updates|\d/\d|[-+ ]lr[^a-z]|current learning rate",
    re.IGNORECASE,
)

# A step and its value, or a list of values, and nothing else.
ALONE = re.compile(r"\s*\0:?[ \t]+\0\s*$|.{0,120}\[\0(?:, \0)+\]\s*$|\s*\0 [a-z]\w{0,30} \0\s*$")

# What a line with values beside those of training contains, whatever they are called.
ASSIGNED = re.compile(r"[:=]\s{0,20}[-+]?(?:\.?\d|nan\b|inf\b)", re.IGNORECASE)
# A message that an update was left out, and not by the scaler.
SKIPPED = re.compile(
    r"skip(?:ping|ped)?(?: (?:the|this|one|an?))?(?: (?:optimi[sz]er|gradient|weight|parameter))? (?:step|update)",
    re.IGNORECASE,
)

BOX_ROW = re.compile(r"^\s*[|│┃]([^|│┃]*)[|│┃]([^|│┃]*)[|│┃]\s*$")
# A line of dashes, after a time stamp or not; names with their values may follow, one a line.
RULER = re.compile(r"(?:[^|=]{0,60}\|)?\s*[-=*#]{5,}+[-=*#\s]*+$")
NAMED_LINE = re.compile(
    r"\s*(?P<name>[^\W\d][\w/.()%#-]*(?: [\w/.()%#-]+){0,5})(?:\s*[:=]\s*|\s{2,})(?P<value>[^\s|{}'\",=]{1,80})\s*"
)
# A name and its number in two columns, and nothing else.
PAIR_LINE = re.compile(r"\s*[^\W\d][\w/.()%#-]*(?: [\w/.()%#-]+){0,5}(?: {2,}|\t+)\0\s*")
# Names of columns, none of them a number; and a cell: a number, with or without a unit.
COLUMNS = re.compile(r"\s*[^\W\d][\w/()@.-]*(?:\s+[^\W\d][\w/()@.-]*)+\s*")
CELL = re.compile(r"(?:\0/\0|\0[GMk]?|\0:\0(?::\0)?|None|--):?")

# Losses that go by their kind or their network alone: `CrossEntropy=`, `SmoothL1=`, `xent:`, `GAN:`, `D_A:`.
LOSS_KIND = re.compile(
    r"(?:train|valid|val|test|eval)?[-_ /]?(?:(?:soft)?max)?[-_ ]?(?:(?:binary|cross|smooth|sparse|categorical)[-_ ]?)*"
    r"(?:\w{0,20}(?:loss|xent|entropy)|nll|b?ce|r?mse|mae|l1|l2|dice|focal|hinge|gan|[dg](?:_[ab])?|elbo|cost|objective"
    r"|ppl|perplexity)(?:[-_ ]?(?:loss|before|after|pi|v|q))?",
    re.IGNORECASE,
)

# Steps and epochs as text logs name them beyond the aliases that every format shares, and after them, best first.
_STEPS = (
    "train_num_updates",
    "step_num",
    "iter(train)",
    "iter_train",
    "s",
    "num_batches",
    "batch",
    "nupdates",
    "total_timesteps",
    "samples_count",
    "num_of_updates",
    "total_t",
    "episode",
    "itr",
)
# Names of a step that may be alone on a line, above or below the lines of metrics.
HEADER_STEPS = frozenset(
    (
        *("step", "global_step", "training_global_step", "train_global_step", "iteration", "iter"),
        *("num_updates", "learning_iteration", "starting_iteration", "current_step", *_STEPS),
    )
)
_MORE = {
    **{name: Meaning(STEP, 1000 + index) for index, name in enumerate(_STEPS)},
    **dict.fromkeys(("epoch(train)", "epoch(val)", "epch", "ep", "episode_num"), Meaning(EPOCH, 0)),
}
_COUNTED = frozenset(["step", "global_step", "iteration", "iter", "epoch"])
_NOT_STEPS = "per max total last every of warmup best save eval log micro until in from num next each checkpoint"
_NO_STEP_AFTER = frozenset(_NOT_STEPS.split())


def role(name: str, names: Names) -> Meaning:
    """Return what a name means: `step`, `epoch`, `rank`, a metric, or nothing; and its index, 0 best.

    >>> role("validation loss at iteration", Names()).role, role("time per iteration", Names()).role
    ('step', '')
    """
    if len(name) <= MAX_NAME:
        return _role(name, names)
    return _role.__wrapped__(name, names)


@lru_cache(maxsize=8192)
def _role(name: str, names: Names) -> Meaning:
    found = names.match(name)
    if found.priority < 0:
        return found
    key = normalize(name.replace("'", ""))
    more = _MORE.get(key)
    if more:
        if names.step_column and more.role == STEP:
            return UNKNOWN
        return more
    axis = names.match(key)
    if axis.role in (STEP, EPOCH, RANK):
        return axis
    if is_time(found.role):
        return UNKNOWN  # a line with the time alone holds no metrics
    if found.role and found.role not in (RUN, PHASE):
        return found
    words = name.lower().split()  # `loss at step`
    if len(words) > 1 and words[-1] in _COUNTED and words[-2] not in _NO_STEP_AFTER:
        return names.match(words[-1])
    return UNKNOWN


_MASKED_PREFIX = re.compile(r"\s*(?:(?:\[[^\]]*\]:?|\0-?\0-?\0[ T]\0:\0:\0(?: [A-Z]{3,4}(?= \|))?|[-|*•](?=\s))\s*)*")


def past_masked_prefix(shape: str) -> int:
    """Return where the message after time stamps and the like begins in a shape."""
    return _MASKED_PREFIX.match(shape).end()  # type: ignore[union-attr]  # it matches nothing, too


def past_prefix(line: str) -> int:
    """Return where the message after time stamps and the like begins."""
    return PREFIX.match(line).end()  # type: ignore[union-attr]  # it matches nothing, too


@lru_cache(maxsize=8192)
def is_loss(name: str, *, kinds: bool) -> bool:
    """Return whether an unknown name may be that of a loss; `kinds` accepts those without the word."""
    return "loss" in name.lower() or (kinds and LOSS_KIND.fullmatch(name) is not None)


def is_reward(name: str) -> bool:
    """Return whether an unknown name may be that of a reward."""
    return describe_name(name).role is Role.REWARD


def may_train(name: str, *, kinds: bool) -> bool:
    """Return whether an unknown name may be that of a loss or, with `kinds`, of a reward."""
    return is_loss(name, kinds=kinds) or (kinds and is_reward(name))


def anchor(names: Names) -> re.Pattern[str]:
    """Return what every line of metrics contains: some usual word, or a column that the user named."""
    own = [re.escape(column) for column in names.asked.values()]
    if own:
        return re.compile("|".join((ANCHOR.pattern, *own)), ANCHOR.flags)
    return ANCHOR


# The processor that a printed array is on: `device=cuda:0`.
DEVICES = frozenset(("cuda", "xpu", "mps", "cpu", "npu", "hpu"))
# `avg loss so far is 0.31`; the words themselves report a loss that is nan.
_IS = re.compile(r"\b(loss|lr)(?: so far)? is (?=\0)")
# A value in the call that makes it, as `tensor([0.5], device='cuda:0')`; its name or its arguments tell.
_CALL = re.compile(rf"(?<=[:=\s\[]){CALL}{BEFORE}{MASK}{AFTER}")
_OF_ARRAY = re.compile(
    r"(?:[Tt]ensor|[Aa]rray|float|int|Decimal)\d*\(|\b(?:dtype|shape|device|place|value|requires_grad|grad_fn)="
)
# The same, going on in the next line.
OPEN_CALL = re.compile(rf"(?<=[:=\s\[]){CALL}[^()\0]{{0,20}}\b(?:shape|dtype)=[^\n]{{0,200}},\s*$")

# What a line of another language calls its epoch, its step, its losses; longer words stand before their parts.
_CJK = (
    (r"第\s*(\0)\s*(?:轮|个?\s*epoch|代|个?周期)", r"epoch \1"),
    (r"(?:训练|迭代)(?:次数|步数)|迭代", "iteration"),
    (r"(?:验证|测试)集?(?:上|整体|总|平均)*的?(?:损失值?|[Ll]oss)|検証損失|검증 ?손실", "val loss"),
    (r"(?:训练|学習|훈련)集?(?:上|整体|总|平均)*的?(?:损失值?|損失|손실|[Ll]oss)", "train loss"),
    (r"(?:验证|测试)集?(?:上|整体|总|平均)*的?(?:准确率|正确率|精度)", "val accuracy"),
    (r"损失值?|損失|손실", "loss"),
    (r"学习率|学習率|학습률", "lr"),
    (r"准确率|正确率|精度|정확도", "accuracy"),
    (r"轮次|周期|エポック|에포크", "epoch"),
    (r"整体|平均|总", ""),
    ("：", ": "),
    ("，", ", "),
)
_IN_CJK = tuple((re.compile(pattern), english) for pattern, english in _CJK)
_HAS_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


def _value_alone(call: re.Match[str]) -> str:
    """Return the number of a printed array, and a mark for each number among its arguments."""
    if not _OF_ARRAY.search(call[0]):
        return call[0]
    return ASIDE * call["before"].count(MASK) + MASK + ASIDE * call["after"].count(MASK)


def spelled(shape: str) -> str:
    r"""Return a shape as the grammar reads it, with no number lost before what is read: in English, and plain.

    >>> spelled("第 \0 轮，训练损失：\0")
    'epoch \x00, train loss: \x00'
    >>> spelled("loss Tensor(shape=[\0], dtype=float32, place=Place(gpu:\0), [\0])")
    'loss \x01\x01\x00'
    """
    if not shape.isascii() and _HAS_CJK.search(shape):
        for pattern, english in _IN_CJK:
            shape = pattern.sub(english, shape)
    shape = _IS.sub(r"\1: ", shape)
    if "(" in shape:
        shape = _CALL.sub(_value_alone, shape)
    return shape
