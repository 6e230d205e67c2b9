"""The words of training logs, which stay: what stabtree reads by, and what trainers print around it."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stabtree.common import endings
from stabtree.frameworks.load import frameworks
from stabtree.loaders import config
from stabtree.metrics.names import known_names
from stabtree.tools.check.tables import SETTINGS
from stabtree.tree.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What is one word to a reader may be several here: `AdamW` is two.
_ENGLISH = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_HAS_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
# The modules whose patterns and lists of words decide how a log is read.
_ROOMS = {
    "loaders.text": "messages saves settings reader forms epochs unread",
    "loaders.text.lines": "grammar line parse blocks spellings printed finish phase",
    "loaders.json": "values wrapped",
    "loaders.tables": "cells",
    "tools.check": "settings precision tables",
    "loaders": "config",
    "metrics": "vocabulary role names table final_values",
}
# Of a pattern the letters that stand for themselves.
_ESCAPED = re.compile(r"\\[a-zA-Z]|\(\?[a-zA-Z]+\)|\(\?P<\w+>")

_ABSENT = re.compile(r"\w\?")
# As a tree states it, in single quotes.
_PATTERN = re.compile(r"pattern: '((?:[^']|'')*)'")

_PRINTED = """
accelerate accelerator accumulation accumulate activation actual adafactor adagrad adam adamw adamax adapter after age
aim aligned all alloc allocated allow alpha amp api app apex arch architecture architectures arg args argument
arguments array as at attempt attention attn augment auto autocast autograd available average axis axolotl back
backend backward balance bar base baseline batch batches batching before begin beginning best beta bf bfloat bias bin
binary bit bits block blocks bool bound box bucket buffer build bytes cache cached call callback callbacks causal cell
checkpoint checkpointing checkpoints checksum chunk ckpt class classes classification classifier clear clip clipping
close code collate collective column comm command commit compile compiled complete completed completion completions
compress compute conda conditional conf config configs configuration connect connection constant consumed container
context continue conv convergence copy core cores correct cosine cost count counter cpu cpus create created critical
crop cross csv csvs ctx cublas cuda cudnn current currently curve cutoff cycle cycles cyclic dark data database
dataloader dataloaders dataset datasets date datetime day days ddp debug decay decode decoder decoupled deep deepspeed
default delta dense deprecated depth dev device devices dict diff dim dimension dimensions dir direction disabled
discriminator disk dispatch dist distributed div done double down download downloaded downloading drop dropout dtype
dump duration dynamic early edit effective eight elapsed element elements elastic embed embedding embeddings empty
enable enabled encode encoder end ended ending engine enqueue entries entry entropy env environment environments ep
epoch epochs eps epsilon error errors estimated eta eval evaluate evaluated evaluating evaluation event events every
example examples except exception exit exp expected experiment experimental exponential export extra factor failed
failure false family fast fatal feature features feed file files fill filter final find finish finished finite first
fit flag flash flat float floats flops flush fold folder found forward fp frac fraction frame free freeze freq
frequency from frozen fsdp full function fused future gain gamma gan gaussian gb gelu gen generate generated
generation generator get git global gloo gnorm going gpt gpu gpus grad gradient gradients grads graph greedy group
groups growth half hash head header heads held hf hidden high history hit home host hour hours hparams html http https
hub huber huggingface hybrid hyper hyperparameters id identity idle ids if ignore image images img import in index
indices inf infer inference infinite infinity info init initial initialize initialized initializing inner input inputs
instance int interrupt interval invalid inverse io is isfinite it item items iter iteration iterations iters itertools
its java jax job jobs join json jsonl keep keras kernel key keys kill killed kind kl label labels lamb lang language
large last latency latest launch launcher layer layernorm layers lazy leaf learn learned learning left length lengths
level lib libs lightning likelihood limit line linear lines lion list lm llm load loaded loader loaders loading local
localhost location log logger logging logits logprobs logs long loop lora loss losses low lower lr lrs macro main
manager manifest manual map mask masked master match matmul matrix max maximum mb mean median mem memory merge merged
message messages meta metadata method metric metrics micro microbatch milestones milliseconds min mini minimum minute
minutes minutes mixed mlflow mlp mode model models module modules momentum monitor month ms mse multi multiplier mup
muon name names nan nans nccl ndarray nesterov net netd netg network networks new next nll no node nodes noise none norm
normal normalization normalize normalized not note notebook notice novograd now null num number numpy nvidia object
objective objects observation of off offload offset ok old on onebit one only op open optim optimization optimizer
optimizers option options optuna order original out output outputs over overflow overflows overlap override own pack
package packages packed packing pad padded padding page paged pair panel parallel parallelism param parameter
parameters params part partition partial pass past patch path patience pattern peak peft penalty per percent percentage
perplexity persistent phase pid pin ping pip pipeline pixel plain plateau point policy poly polynomial pool port
position positive post power ppl ppo pre precision predict predicted prediction predictions prefetch prefix prepare
preprocess pretrain pretrained pretraining previous primary print prior probability probs process processed processes
processing prodigy profile progress project prompt prompts prob properties proximal prune pt pth py python pytorch
qlora quality quant quantile quantization quantized query queue radam random range rank ranks rate rates ratio raw
read reader reading ready real reason recall recent reconstruction recorder recovery reduce reduced reducing reference
reg regression regularization reinit relative reload relu remaining remote remove removed repeat replay replica report
reproducible request required res reserved reset residual resize resnet restart restarted restarting restore restored
restoring result results resume resumed resuming return returns reward rewards right rms rmsprop root rope rotary round
row rows run runner running runs runtime safe safetensors sample sampled sampler samples sampling save saved saver
saves saving scalar scale scaled scaler scaling schedule schedulefree scheduler schedules schema score scores script
search sec second secondary seconds secs section seed seeds seen segment self seq seqlen sequence sequences server
session set setting settings setup sgd shampoo shape shard sharded sharding shards share shared short should show
shuffle shutdown sigma sigmoid signal simple since single site size sizes skip skipped skipping slice slow slurm small
smooth smoothed smoothing soft softmax softplus sophia source space sparse special spectral speed split splits sqrt
square squared src stable stage standard start started starting starts stat state states static statistics stats status
std stderr stdout step steps stochastic stop stopped stopping storage store str strategy stream string strings student
sub success sum summary super supervised support swap sync synchronize system table tag tags target targets task tasks
tau tcp teacher temp temperature tensor tensorboard tensors test tested testing tests tf tflops text then thread
threads three threshold throughput thrown tied tile time timeout timer times timestamp timestep timesteps tmp to token
tokenization tokenize tokenized tokenizer tokenizers tokens too tool top topk total tot tp tpu trace traceback track
tracker train trainable trained trainer training train trainval transform transformer transformers trial triangular
trigger triton trl true truncate truncated truncation try tune tuning tuple two txt type types unet uniform unique unit
units unk unknown unscale until unused up update updated updates upper url usage use used user using usr util
utilization utils val valid validate validating validation value values var variance vector venv verbose version vision
vllm vocab vocabulary volume wait waiting wall wandb warm warmup warmups warn warning warnings was watch weight weighted
weights while width window with without work worker workers workspace world wrap wrapper write writer writing wsd xent
xla yaml year zero zeros opt bin
espnet olmo torch torchvision litgpt yolo detectron mmcv timm baselines rllib swift unsloth trlx torchrun mosaicml
horovod fsspec
sagemaker kaggle colab docker cohere slurmstepd srun sbatch
mib gib kib kb tb hz khz mhz ghz ns us khrs it its secs min mins hr hrs tok toks samp img imgs tps wps ups bsz bs gbs
mbs clr wd mom gpumem loss ce bce rmse mae elbo xe l1 l2 acc auc iou map psnr ssim bleu rouge wer cer bpb bpc bpd
jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun utc gmt am pm est cet
nvtx sm ampere hopper volta turing tesla geforce rtx gtx amd rocm mi cuda hip xpu npu mps ipu hpu
ok yes no on off true false null none nan inf infinity
stateful control attributes pos curr stride numel inv eos bos bbox rpn loc format zlib payload period confidence thresh
fc rcnn negative fg roi bg neg anchors height att ctc percentile angular cooldown mult warmdown spatial mfu initializer
shift ims proposal channels instances area deform dilation stem nms convs candidates pooler resolution keypoints
detections dims embd ema softcap kv qk qkv allreduce wpb ngram intermediate repetition advantages enc dec theta rc
mixup mosaic hsv degrees shear perspective flipud fliplr imgsz lrf dfl pose kobj nbs erasing gflops decays explained
calibration disable proj mul terminated backbone detect
nn functional cast math transpose flatten broadcast buffers bwd arange gather tanh detach clamp clone register strict
tried allocate driver smi ecc uuid subprocess sys os optimize kernels compiler avx anaconda miniconda dnn linux
mlruns github com org io cat gcc cpp
gz bz xz zst tar tfevents
"""
# Letters and digits that are one word.
_WHOLE = "e4m3 e5m2 fp8e4m3 fp8e5m2 e4m3fn e5m2fnuz map50 map5095 2d3d x86 utf8 sha256 md5 b64"


def pieces(words: Iterable[str]) -> Iterator[str]:
    """The runs of letters in some words, in lower case."""
    for word in words:
        yield from (piece.lower() for piece in _ENGLISH.findall(word))
        yield from _LETTERS.findall(word.lower())


def in_pieces(token: str) -> re.Pattern[str]:
    """What finds the words in a run of letters and digits: where no blank parts them, those that are known."""
    if token.isascii():
        return _ENGLISH
    if _HAS_CJK.search(token):
        return _unparted()
    return _LETTERS


@lru_cache(maxsize=1)
def _unparted() -> re.Pattern[str]:
    words = sorted((word for word in known() if _HAS_CJK.search(word)), key=len, reverse=True)
    return re.compile(rf"{'|'.join(words)}|[a-zA-Z]+|(?:(?!{'|'.join(words)})[^\W\d_a-zA-Z])+")


@lru_cache(maxsize=1)
def known() -> frozenset[str]:
    """The words that stay wherever they stand: those of names of metrics and settings, and of trainers' own lines."""
    named = [*known_names()]
    for key, (_, spelled) in config.KEYS.items():
        named += [key, *spelled.split()]
    for key, (_, words) in SETTINGS.items():
        named += [key, *words]
    for room, names in _ROOMS.items():
        for name in names.split():
            named += _said_in(f"{room}.{name}")
    named += (word for word in pieces(_said_of_trainers()) if len(word) > 1)  # letters would leave ids as they are
    return frozenset({*pieces(named), *_PRINTED.split(), *_WHOLE.split()})


@lru_cache(maxsize=1)
def of_errors() -> frozenset[str]:
    """The words that stay in a line that may tell of an error: those of the messages that trees and predicates seek."""
    patterns = [*_said_in("predicates.lines"), *_words_of((endings.table().words, *endings.table().patterns.values()))]
    for file in shipped().values():
        patterns += [_plainly(found) for found in _PATTERN.findall(file.read_text(encoding="utf-8"))]
    return known() | frozenset(pieces(patterns))


def _said_in(module: str) -> list[str]:
    """The words in the patterns and lists of a module."""
    held = vars(import_module(f"stabtree.{module}"))
    return _words_of(value for name, value in held.items() if not name.startswith("__"))


def _said_of_trainers() -> list[str]:
    """Return the words by which trainers are known, and those that are theirs alone."""
    found = []
    for one in frameworks().values():
        config, log = one.config, one.log
        rules = tuple((rule.at, rule.key, rule.value, rule.words) for rule in config.rules)
        of_config = (config.marks, config.keys, config.ignored, rules)
        of_log = (log.marks, log.path, log.prefix, log.beside, log.last_line, log.errors, tuple(log.prints))
        found += _words_of((one.id, of_config, of_log))
    return found


def _words_of(values: Iterable[Any]) -> list[str]:
    found: list[str] = []
    for value in values:
        if isinstance(value, re.Pattern):
            found.append(_plainly(str(value.pattern)))
        elif isinstance(value, str):
            found.append(_plainly(value))
        elif isinstance(value, frozenset | set | tuple):
            found += _words_of(value)
        elif isinstance(value, dict):
            found += _words_of(value.items())
    return found


def _plainly(pattern: str) -> str:
    """The letters of a pattern that stand for themselves, with and without those that may be absent."""
    plain = _ESCAPED.sub(" ", pattern)
    return f"{plain} {_ABSENT.sub('', plain)}"
