"""Lines of every trainer, each in its own spelling, with what they hold."""

from __future__ import annotations

import math

Points = list[tuple[int, float]]

MEGATRON = (
    " iteration {0:8d}/    1000 | consumed samples: {0:12d} | elapsed time per iteration (ms): 9{0}.5 |"
    " learning rate: 1.{0}00E-04 | global batch size:    16 |{1} loss scale: 4096.0 |{2}"
    " number of skipped iterations:   0 | number of nan iterations:   {3} |\n"
)

UNEVEN = (2, 3, 7, 9, 14, 15, 20)
# name -> (log, metric -> points)
LOGS: dict[str, tuple[str, dict[str, Points]]] = {
    "scores of episodes": (
        "".join(f"Episode {100 * i}\tAverage Score: {-40.5 + 10 * i:.2f}\n" for i in (1, 2, 3)),
        {"reward": [(100, -30.5), (200, -20.5), (300, -10.5)]},
    ),
    "the length of an episode is no step": (
        "".join(f"Episode: {i} | Steps: {70 - i} | Reward: {i}.5\n" for i in (4, 5, 6)),
        {"reward": [(4, 4.5), (5, 5.5), (6, 6.5)]},
    ),
    "a sentence": (
        "".join(
            f"[INFO] Cart. Step: {500 * i}. Time Elapsed: {i}.5 s. Mean Reward: 0.{i}. Training.\n" for i in (1, 2, 3)
        ),
        {"reward": [(500, 0.1), (1000, 0.2), (1500, 0.3)]},
    ),
    "below a header": (
        "".join(
            f"{'#' * 40}\n   Learning iteration {i}/9\n\n   Value loss: 0.5{i}\n   Mean reward: {i}.25\n"
            for i in (0, 1, 2)
        ),
        {"reward": [(0, 0.25), (1, 1.25), (2, 2.25)]},
    ),
    "actor, critic and their score": (
        "".join(
            f"Epoch: 0 | Step: {i} | PPO Epoch: 1 | Actor Loss: -0.0{i} | Critic Loss: 0.2{i} | Other Loss: 0.0\n"
            f"Average reward score: {i}.75\n{'-' * 40}\n"
            for i in (1, 2, 3)
        ),
        {"reward": [(1, 1.75), (2, 2.75), (3, 3.75)]},
    ),
    "a learner and an evaluator": (
        "".join(
            f"[Learner] Critic Loss = 0.{i} | Walltime = 3.1\n[Evaluator] Episode Return = {i}.5 | Rate = 41.2\n"
            for i in range(1, 10)
        ),
        {
            "loss": [(i - 1, float(f"0.{i}")) for i in range(1, 10)],
            "reward": [(i - 1, i + 0.5) for i in range(1, 10)],
        },
    ),
    "megatron": (
        "".join(MEGATRON.format(i, f" lm loss: {11 - i}.500000E+00 |", f" grad norm: {i}.125 |", 0) for i in (1, 2, 3))
        + "-" * 80
        + "\n validation loss at iteration 3 | lm loss value: 7.250000E+00 | lm loss PPL: 1.4E+03 |\n",
        {
            "loss": [(1, 10.5), (2, 9.5), (3, 8.5)],
            "grad_norm": [(1, 1.125), (2, 2.125), (3, 3.125)],
            "loss_scale": [(1, 4096.0), (2, 4096.0), (3, 4096.0)],
            "lr": [(1, 1.1e-4), (2, 1.2e-4), (3, 1.3e-4)],
            "eval_loss": [(3, 7.25)],
        },
    ),
    "nanogpt": (
        (
            "step 0: train loss 9.8, val loss 9.9\niter 0: loss 9.7500, time 120.50ms, mfu -100.00%\n"
            "iter 10: loss 8.5000, time 20.50ms, mfu 11.00%\niter 20: loss nan, time 20.50ms, mfu 11.00%\n"
            "step 20: train loss 8.1, val loss 8.2\n"
        ),
        {"loss": [(0, 9.75), (10, 8.5), (20, math.nan)], "eval_loss": [(0, 9.9), (20, 8.2)]},
    ),
    "modded-nanogpt": (
        (
            "import torch\nclass Args:\n    val_loss_every : int = 125\n    learning_rate : float = 0.0036\n"
            "    step = 0\n    loss = 0.0\nloss.backward() # step 3 loss 1\n====\n"
            "step:0/90 val_loss:10.5 train_time:0ms step_avg:nanms\n"
            "step:1/90 train_loss:10.25 train_time:9ms step_avg:nanms\n"
            "step:2/90 train_loss:9.5 train_time:19ms step_avg:nanms\n"
            "step:2/90 val_loss:9.25 train_time:20ms step_avg:9ms\n"
            "step:3/90 train_loss:9.0 train_time:29ms step_avg:9ms\n"
        ),
        {"loss": [(1, 10.25), (2, 9.5), (3, 9.0)], "eval_loss": [(0, 10.5), (2, 9.25)]},
    ),
    "llm.c": (
        (
            "s:0 tel:11.5\ns:0 trl:11.25 lr:0.000001 norm:15.5\ns:1 trl:10.75 lr:0.000002 norm:14.5\n"
            "s:2 trl:10.5 lr:0.000003 norm:9\n"
        ),
        {
            "loss": [(0, 11.25), (1, 10.75), (2, 10.5)],
            "grad_norm": [(0, 15.5), (1, 14.5), (2, 9.0)],
            "eval_loss": [(0, 11.5)],
        },
    ),
    "tacotron": (
        (
            "Train loss 0 25.5 Grad Norm 9.5 3.41s/it\nTrain loss 1 24.25 Grad Norm 8.5 3.40s/it\n"
            "Train loss 2 23.0 Grad Norm 7.5 3.40s/it\nValidation loss 2:  23.500000  \n"
        ),
        {
            "loss": [(0, 25.5), (1, 24.25), (2, 23.0)],
            "grad_norm": [(0, 9.5), (1, 8.5), (2, 7.5)],
            "eval_loss": [(2, 23.5)],
        },
    ),
    "catboost": (
        "".join(
            f"{i}:\tlearn: 0.{9 - i}5\ttest: 0.{9 - i}75\tbest: 0.{9 - i}75 ({i})\ttotal: 5{i}ms\n" for i in range(3)
        ),
        {"loss": [(0, 0.95), (1, 0.85), (2, 0.75)], "eval_loss": [(0, 0.975), (1, 0.875), (2, 0.775)]},
    ),
    "xgboost, an error": (
        "".join(f"[{i}]\ttrain-rmse:0.{9 - i}5\teval-rmse:0.{9 - i}75\n" for i in range(4)),
        {"loss": [(i, 0.95 - i / 10) for i in range(4)], "eval_loss": [(i, 0.975 - i / 10) for i in range(4)]},
    ),
    "in Chinese": (
        "".join(
            f"-------第 {e} 轮训练开始-------\n训练次数：{100 * e}，Loss：{5 - e}.5\n"
            f"整体测试集上的Loss：{6 - e}.25\n整体测试集上的正确率：0.{e}\n"
            for e in range(1, 5)
        ),
        {
            "loss": [(100, 4.5), (200, 3.5), (300, 2.5), (400, 1.5)],
            "eval_loss": [(100, 5.25), (200, 4.25), (300, 3.25), (400, 2.25)],
        },
    ),
    "beside warnings of Weights & Biases": (
        "".join(
            f"step {i} loss: {9 - i}.5\nwandb: WARNING (User provided step: {i} is less than current step: 9. "
            f"Dropping entry: {{'loss': {9 - i}.25, '_timestamp': 1.5}}).\n"
            f"wandb: WARNING Step must only increase in log calls.  Step {i} < 9; dropping {{'loss': {9 - i}.25}}.\n"
            for i in range(1, 5)
        ),
        {"loss": [(i, 9.5 - i) for i in range(1, 5)]},
    ),
    "in Portuguese": (
        "".join(f"Época {e:03d}/30 | loss: {5 - e}.5\n" for e in range(1, 5)),
        {"loss": [(1, 4.5), (2, 3.5), (3, 2.5), (4, 1.5)]},
    ),
    "a row an epoch, at the same batch": (
        "".join(f"Epoch [{e}/9], Step [300/300], d_loss: 0.{e}5, g_loss: {e}.5\n" for e in range(1, 6)),
        {"loss": [(300 * e, e + 0.5) for e in range(1, 6)]},
    ),
    "batches of networks that play against each other": (
        "".join(
            f"[{e}/9][{b}/150]\tLoss_D: 0.5\tLoss_G: {e}.{b}\tD(x): 0.81\n" for e in range(3) for b in (0, 50, 100)
        ),
        {"loss": [(150 * e + b, float(f"{e}.{b}")) for e in range(3) for b in (0, 50, 100)]},
    ),
    "resumed at a later epoch": (
        "".join(f"Epoch: [{e}/90] Iter:[{b}/40], Loss: 1.{e}\n" for e in (31, 32, 33) for b in (0, 20)),
        {"loss": [(40 * (e - 1) + b, float(f"1.{e}")) for e in (31, 32, 33) for b in (0, 20)]},
    ),
    "litgpt": (
        (
            "Epoch 1 | iter 1 step 1 | loss train: 1.5, val: n/a | iter time: 820.31 ms (step)\n"
            "Epoch 1 | iter 2 step 2 | loss train: 1.25, val: n/a | iter time: 548.72 ms (step)\n"
            "Epoch 1 | iter 3 step 3 | loss train: 1.0, val: 1.75 | iter time: 548.72 ms (step)\n"
        ),
        {"loss": [(1, 1.5), (2, 1.25), (3, 1.0)]},
    ),
    "torchtune": (
        (
            "Step 1 | loss:1.5 lr:1e-05 tokens_per_second_per_gpu:100.5\n"
            "Step 2 | loss:1.25 lr:2e-05 tokens_per_second_per_gpu:99\n"
            "Step 3 | loss:1.0 lr:3e-05 tokens_per_second_per_gpu:99\n"
        ),
        {"loss": [(1, 1.5), (2, 1.25), (3, 1.0)], "lr": [(1, 1e-5), (2, 2e-5), (3, 3e-5)]},
    ),
    "torchtitan": (
        "".join(
            f"[rank0]:[titan] 2031-01-02 03:04:0{i},708 - root - INFO - step: {i:2d}  loss: {12 - i:2d}.5000"
            f"  grad_norm:  {i}.2500  memory: 116.16GiB(83.14%)  tps: 5,97{i}  tflops: 47.71  mfu: 4.82%\n"
            for i in (1, 2, 3)
        ),
        {"loss": [(1, 11.5), (2, 10.5), (3, 9.5)], "grad_norm": [(1, 1.25), (2, 2.25), (3, 3.25)]},
    ),
    "olmo": (
        "".join(
            f"[2031-01-02 03:04:0{i}] INFO     [olmo.train:816, rank=0] [step={i}/900]\n"
            f"    optim/total_grad_norm={i}.5\n    train/CrossEntropyLoss=1{i}.25\n    train/Perplexity=76,631\n"
            "    System/Peak GPU Memory (MB)=42,133\n"
            for i in (1, 2, 3)
        ),
        {"loss": [(1, 11.25), (2, 12.25), (3, 13.25)]},
    ),
    "composer": (
        "".join(
            f"[batch={i}/20]:\n\t Train time/batch: {i - 1}\n\t Train loss/train/total: {i}.5\n"
            f"\t Train lr-DecoupledAdamW/group0: 0.00{i}\n"
            for i in (1, 2)
        ),
        {"loss": [(1, 1.5), (2, 2.5)], "lr": [(1, 0.001), (2, 0.002)]},
    ),
    "fairseq json": (
        (
            '2031-03-08 12:31:36 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "16.5", '
            '"num_updates": "1", '
            '"lr": "2e-05", "gnorm": "20.5", "loss_scale": "4"}\n'
            '2031-03-08 12:31:37 | INFO | train_inner | {"epoch": 1, "update": 0.2, "loss": "15.5", '
            '"num_updates": "2", '
            '"lr": "4e-05", "gnorm": "19.5", "loss_scale": "4"}\n'
            '2031-03-08 12:31:38 | INFO | valid | {"epoch": 1, "valid_loss": "15.25", "valid_num_updates": "2"}\n'
            '2031-03-08 12:31:39 | INFO | train | {"epoch": 1, "train_loss": "16.0", "train_num_updates": "2"}\n'
        ),
        {"loss": [(1, 16.5), (2, 15.5)], "gnorm": [], "grad_norm": [(1, 20.5), (2, 19.5)], "eval_loss": [(2, 15.25)]},
    ),
    "fairseq bars": (
        (
            "| epoch 001 | loss 6.5 | nll_loss 4.9 | num_updates 10 | lr 0.0006 | gnorm 0.5 | "
            "loss_scale 0.500 | wall 23\n"
            "| epoch 001 | valid on 'valid' subset | loss 8.25 | nll_loss 7.1 | num_updates 10 | best 4.46\n"
            "| epoch 002 | loss 5.5 | nll_loss 4.9 | num_updates 20 | lr 0.0005 | gnorm 0.25 | "
            "loss_scale 0.500 | wall 46\n"
        ),
        {"loss": [(10, 6.5), (20, 5.5)], "eval_loss": [(10, 8.25)], "grad_norm": [(10, 0.5), (20, 0.25)]},
    ),
    "espnet": (
        (
            "[host] 2031-09-17 18:14:26 (trainer:243) INFO: 1epoch results: [train] iter_time=0.164, loss=48.5, "
            "loss_ctc=1.154e+03, lr_0=2.0e-06, time=1 minute and 43.19 seconds, [valid] loss=47.5, cer=1.010\n"
            "[host] 2031-09-17 18:15:26,464 (trainer:243) INFO: 2epoch results: [train] iter_time=0.164, loss=38.5, "
            "loss_ctc=1.154e+03, lr_0=4.0e-06, time=1 minute and 40.19 seconds, [valid] loss=37.5, cer=1.010\n"
        ),
        {"loss": [(1, 48.5), (2, 38.5)], "eval_loss": [(1, 47.5), (2, 37.5)], "lr": [(1, 2e-6), (2, 4e-6)]},
    ),
    "mmengine": (
        (
            "10/30 22:18:02 - mmengine - INFO - Epoch(train) [1][ 5/10]  lr: 1e-04  loss: 2.5  grad_norm: 3.5\n"
            "10/30 22:18:03 - mmengine - INFO - Epoch(train) [1][10/10]  lr: 1e-04  loss: 2.25  grad_norm: nan\n"
            "10/30 22:18:04 - mmengine - INFO - Epoch(train) [2][ 5/10]  lr: 1e-04  loss: 2.0  grad_norm: 3.5\n"
        ),
        {"loss": [(5, 2.5), (10, 2.25), (15, 2.0)], "grad_norm": [(5, 3.5), (10, math.nan), (15, 3.5)]},
    ),
    "detectron2": (
        (
            "\x1b[32m[11/17 15:16:42 d2.utils.events]: \x1b[0m  iter: 19  total_loss: 0.5 l: 0.25  lr: 0.001\n"
            "\x1b[32m[11/17 15:16:55 d2.utils.events]: \x1b[0m  iter: 39  total_loss: 0.375 l: 0.1  lr: 0.002\n"
            "FloatingPointError: Loss became infinite or NaN at iteration=41!\n"
        ),
        {"loss": [(19, 0.5), (39, 0.375), (41, math.nan)], "lr": [(19, 0.001), (39, 0.002)]},
    ),
    "vision": (
        (
            "Epoch: [0]  [ 0/20]  eta: 0:21:10  lr: 0.001  loss: 6.9000 (6.9500)  time: 1.2\n"
            "Epoch: [0]  [10/20]  eta: 0:21:10  lr: 0.001  loss: 6.5000 (6.7000)  time: 1.2\n"
            "Epoch: [1]  [ 0/20]  eta: 0:21:10  lr: 0.001  loss: 6.2500 (6.7000)  time: 1.2\n"
        ),
        {"loss": [(0, 6.9), (10, 6.5), (20, 6.25)]},
    ),
    "keras": (
        (
            "Epoch 1/3\n 10/30 [===>....] - ETA: 2s - loss: 0.9\r 30/30 [=========] - 1s - loss: 0.75 - val_loss: 0.8\n"
            "Epoch 2/3\n 10/30 [===>....] - ETA: 2s - loss: 0.7\r 30/30 [=========] - 1s - loss: nan - val_loss: nan\n"
        ),
        {"loss": [(1, 0.75), (2, math.nan)], "eval_loss": [(1, 0.8), (2, math.nan)]},
    ),
    "tqdm": (
        (
            "\rEpoch 0:   0%|          | 1/90 [59:12<15:03, 2s/it, loss=7.75, train_loss=7.5, "
            "global_step=0.0]"
            "\rEpoch 0:   2%|#         | 2/90 [59:30<15:41, 2s/it, loss=7.5, train_loss=7.25, "
            "global_step=1.0]"
            "\rEpoch 0:   2%|#         | 2/90 [59:30<15:41, 2s/it, loss=7.25, train_loss=7.25, "
            "global_step=1.0]\n"
        ),
        {"loss": [(0, 7.5), (1, 7.25)]},
    ),
    "hugging face": (
        (
            "{'loss': 1.5, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
            "{'loss': '1.25', 'grad_norm': '2.5', 'learning_rate': '2e-05', 'epoch': '0.2'}\n"
            "{‘loss’: 1.0, ‘grad_norm’: 3.5, ‘learning_rate’: 3e-05, ‘epoch’: 0.3}\n"
            "{'eval_loss': 1.75, 'eval_runtime': 3.5, 'epoch': 0.3}\n"
            '{\n    "loss": 0.75,\n    "grad_norm": nan,\n    "learning_rate": "4e-05",\n    "epoch": 0.4,\n}\n'
            "{'train_runtime': 12.5, 'train_loss': 1.2, 'epoch': 0.4}\n"
        ),
        {
            "loss": [(0, 1.5), (1, 1.25), (2, 1.0), (3, 0.75)],
            "eval_loss": [(2, 1.75)],
            "grad_norm": [(0, math.nan), (1, 2.5), (2, 3.5), (3, math.nan)],
        },
    ),
    "hugging face on the bar": (
        (
            " 64%|███▎  | 860/1352 [05:28<01:05,  7.49it/s]{'loss': 0.725, 'learning_rate': 1e-05, 'epoch': 0.63}\n"
            " 64%|███▎  | 870/1352 [05:29<01:05,  7.49it/s]{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.64}\n"
            " 64%|███▎  | 873/1352 [05:29<01:05,  7.49it/s]Gradient overflow.  Skipping step, "
            "loss scaler 0 reducing loss scale to 32768.0\n"
            " 65%|███▎  | 880/1352 [05:30<01:05,  7.49it/s]{'loss': 0.625, 'learning_rate': 1e-05, 'epoch': 0.65}\n"
        ),
        {
            "loss": [(860, 0.725), (870, 0.5), (880, 0.625)],
            "loss_scale": [(873, 32768.0)],
            "grad_norm": [(873, math.inf)],
        },
    ),
    "mllog": (
        (
            ':::MLLOG {"key": "opt_base_learning_rate", "value": 0.5, "metadata": {"lineno": 3}}\n'
            ':::MLLOG {"key": "train_loss", "value": 2.5, "metadata": {"lineno": 9, '
            '"samples_count": 80, "lr": 0.25}}\n'
            ':::MLLOG {"key": "train_loss", "value": 2.25, "metadata": {"lineno": 9, '
            '"samples_count": 160, "lr": 0.125}}\n'
        ),
        {"loss": [(80, 2.5), (160, 2.25)], "lr": [(80, 0.25), (160, 0.125)]},
    ),
    "box": (
        "".join(
            f"{'-' * 28}\n| grad_norm     | 0.{i}5     |\n| loss          | 1.{i}5     |\n"
            f"| step          | {i}e+03    |\n{'-' * 28}\n"
            for i in (1, 2)
        ),
        {"loss": [(1000, 1.15), (2000, 1.25)], "grad_norm": [(1000, 0.15), (2000, 0.25)]},
    ),
    "verl": (
        (
            "(TaskRunner pid=15930, ip=10.0.0.3) step:1\n - global_seqlen/min:255486\n - actor/pg_loss:0.5\n"
            " - actor/grad_norm:0.25\n - actor/lr:1e-06\n - training/global_step:1\n - training/epoch:0\n"
            "(TaskRunner pid=15930, ip=10.0.0.3) step:2\n - global_seqlen/min:255486\n - actor/pg_loss:0.25\n"
            " - actor/grad_norm:0.125\n - actor/lr:1e-06\n - training/global_step:2\n - training/epoch:0\n"
        ),
        {"loss": [(1, 0.5), (2, 0.25)], "grad_norm": [(1, 0.25), (2, 0.125)]},
    ),
    "the step below": (
        (
            "2031-02-03 08:03:36,499 INFO     steps_per_s=443.39, reward_per_sec=-0.0046, loss=0.25, entropy=7.487\n"
            "2031-02-03 08:03:36,767 INFO     iteration 9/10000\n"
            "2031-02-03 08:03:57,397 INFO     steps_per_s=428.69, reward_per_sec=-0.0031, loss=0.5, entropy=7.529\n"
            "2031-02-03 08:03:57,624 INFO     iteration 10/10000\n"
            "2031-02-03 08:04:26,668 INFO     steps_per_s=297.42, reward_per_sec=-0.0052, loss=0.75, entropy=7.551\n"
        ),
        {"loss": [(9, 0.25), (10, 0.5), (11, 0.75)]},
    ),
    "epochs over several lines": (
        (
            "Epoch 1/20\nTrain Loss: 7.5 - Train Perplexity: 1803.70\nValid Loss: 6.5 - Valid Perplexity: 763.86\n"
            "Time: 122.57s - LR: 9.5e-05\nEpoch 2/20\nTrain Loss: 6.25 - Train Perplexity: 661.02\n"
            "Valid Loss: 6.0 - Valid Perplexity: 509.60\nTime: 70.60s - LR: 9.0e-05\n"
        ),
        {"loss": [(1, 7.5), (2, 6.25)], "eval_loss": [(1, 6.5), (2, 6.0)], "lr": [(1, 9.5e-5), (2, 9e-5)]},
    ),
    "key value": (
        (
            "Step 0 -- Train loss: 2.5, Train Acc: 0.12 Test Acc: 0.1\n"
            "Step 1 -- Train loss: 2.25, Train Acc: 0.12 Test Acc: 0.1\n"
            "Step 2 -- Train loss: 2.0, Train Acc: 0.12 Test Acc: 0.1\n"
        ),
        {"loss": [(0, 2.5), (1, 2.25), (2, 2.0)]},
    ),
    "batches that start again in each epoch": (
        "".join(f"[{e}/3] batch {b}/30 loss: {e}.{b}\n" for e in (1, 2, 3) for b in (10, 20, 30)),
        {"loss": [((e - 1) * 30 + b, e + b / 100) for e in (1, 2, 3) for b in (10, 20, 30)]},
    ),
    "two counts in brackets": (
        "".join(f"INFO Train: [{e}/300][{b}/40]\tlr 0.1\tloss {e}.{b} (9.9)\n" for e in (0, 1) for b in (0, 20, 39)),
        {"loss": [(e * 40 + b, float(f"{e}.{b}")) for e in (0, 1) for b in (0, 20, 39)]},
    ),
    "an epoch before the position": (
        "".join(f"Train: {e} [{b:4d}/40 ({b}%)]  Loss: {e}.{b} (9.9)\n" for e in (0, 1) for b in (0, 20, 39)),
        {"loss": [(e * 40 + b, float(f"{e}.{b}")) for e in (0, 1) for b in (0, 20, 39)]},
    ),
    "batches under the header of an epoch": (
        "".join(f"Epoch {e}/3\n" + "".join(f"  step {b} loss {e}.{b}\n" for b in (10, 20, 30)) for e in (1, 2, 3)),
        {"loss": [((e - 1) * 30 + b, e + b / 100) for e in (1, 2, 3) for b in (10, 20, 30)]},
    ),
    "samples are no steps": (
        "".join(f"Train Epoch: {e} [{b}/6400 ({b}%)]\tLoss: {e}.{b}\n" for e in (1, 2) for b in (0, 640, 1280))
        + "\nTest set: Average loss: 0.5, Accuracy: 98/100 (98%)\n",
        {
            "loss": [(3 * (e - 1) + b // 640, float(f"{e}.{b}")) for e in (1, 2) for b in (0, 640, 1280)],
            "eval_loss": [(5, 0.5)],
        },
    ),
    "rows without a step among those with one": (
        "".join(f"Epoch 0, Loss: {i}.5, Score: 1\n" + f"[INFO] step={i}, lr=[0.1]\n" * (i % 4 == 3) for i in range(8)),
        {"loss": [(i, i + 0.5) for i in range(8)]},
    ),
    "columns below their names": (
        "".join(
            f"\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            f"      {e}/4       3.5G       9.9       9.9        9.9         12        640:   0%\n"
            f"                 Class     Images  Instances      Box(P          R      mAP50\n"
            f"      {e}/4       3.5G      1.{e}        2.0       0.5         12        640: 100%|###| 9/9\n"
            for e in (1, 2, 3, 4)
        ),
        {"loss": [(e, 3.5 + e / 10) for e in (1, 2, 3, 4)]},
    ),
    "names below each other between rulers": (
        "".join(
            f"{'=' * 60}\ntime elapsed: 0:06:5{i}\nnum of updates: {i}000\nloss: {i}.5\nlr: 0.{i}\n"
            for i in range(1, 5)
        )
        + "=" * 60,
        {"loss": [(i * 1000, i + 0.5) for i in range(1, 5)], "lr": [(i * 1000, i / 10) for i in range(1, 5)]},
    ),
    "names below each other behind a time stamp": (
        "".join(
            f"2031-01-02 03:04:0{i}.5 PST | {line}\n"
            for i in range(4)
            for line in ("-----  ------", f"Iteration     {i}", f"Loss     -0.{i}", "Entropy   1.5", "-----  ------")
        ),
        {"loss": [(i, -i / 10) for i in range(4)]},
    ),
    "a trainer's bar drawn anew below each row": (
        "\r  0%|  | 0/40 [00:00<00:09, 9.0it/s]\n"
        + "".join(
            f"  1%|  | {i - 2}/40 [00:00<00:09, 9.0it/s]\n{{'loss': '{i}.5', 'epoch': '0.0{i}'}}\n"
            f"  1%|  | {i}/40 [00:00<00:09, 9.0it/s]\n"
            for i in (5, 10, 15, 20, 25)
        ),
        {"loss": [(i, i + 0.5) for i in (5, 10, 15, 20, 25)]},
    ),
    "the last state of a bar": (
        (
            "`Trainer.fit` stopped: `max_epochs=12` reached.\n"
            "Epoch 11/11 ━━━━━━━━━━━━━━━━ 43/43 0:00:00 •        113.42it/s v_num: 0.000     \n"
            "                                   0:00:00                     train_loss: 2.25 \n"
            "                                                               val_loss: 2.5    \n"
        ),
        {"loss": [(11, 2.25)], "eval_loss": [(11, 2.5)]},
    ),
    "printed text wrapped in JSON": (
        "["
        + "\n,".join(
            f'{{"stream_name":"stdout","time":{i}.5,"data":"step {i} "}}\n'
            f',{{"stream_name":"stdout","time":{i}.5,"data":"loss {i}.5\\r\\n"}}'
            for i in range(5)
        )
        + "]\n",
        {"loss": [(i, i + 0.5) for i in range(5)]},
    ),
    "a rate is no step": (
        "".join(f"{i}/20000 train_loss: {i}.5 train_time: 0.0m tok/s: 747{i}117\n" for i in range(1, 5)),
        {"loss": [(i, i + 0.5) for i in range(1, 5)]},
    ),
    "cross-entropy by batches": (
        "".join(
            f"INFO:root:Epoch[{e}] Batch [{b}-{b + 20}]\tSpeed: 900.5 samples/sec\tcross-entropy={e}.{b}\n"
            for e in range(3)
            for b in (0, 20, 40)
        ),
        {"loss": [(60 * e + b, float(f"{e}.{b}")) for e in range(3) for b in (0, 20, 40)]},
    ),
    "kinds of losses by batches": (
        "".join(
            "".join(f"[Epoch {e}][Batch {b}], Speed: 90.5 samples/sec, SmoothL1={e}.{b}\n" for b in range(9, 70, 10))
            + f"[Epoch {e}] Training cost: 60.5, SmoothL1={e}.5\n"
            for e in range(3)
        ),
        {"loss": [(70 * e + b, float(f"{e}.{b}")) for e in range(3) for b in range(9, 70, 10)]},
    ),
    "a policy's loss and a value's": (
        "".join(
            f"Epoch 1 | Step {i}/8 | Policy Loss: -0.{i} | Value Loss: {i}.5 | KL: 0.0{i} | Reward: 1.{i}\n"
            for i in range(1, 9)
        ),
        {
            "loss": [(i, -i / 10) for i in range(1, 9)],
            "value_loss": [(i, i + 0.5) for i in range(1, 9)],
            "reward": [(i, 1 + i / 10) for i in range(1, 9)],
        },
    ),
    "the rate on a line of its own": (
        "".join(
            f"2031-01-02 03:04:05.5: Epoch {e}\n2031-01-02 03:04:05.5: Current learning rate: 0.0{9 - e}\n"
            f"2031-01-02 03:04:05.6: train_loss -0.{e}\n2031-01-02 03:04:05.7: val_loss -0.{e}5\n"
            for e in range(4)
        ),
        {"loss": [(e, -e / 10) for e in range(4)], "lr": [(e, (9 - e) / 100) for e in range(4)]},
    ),
    "dicts below a bar at uneven places": (
        "".join(
            f" {n}%|# | {n}/20 [00:01<00:10, 5it/s]\n" + f"{{'loss': {n}.5, 'epoch': {n / 20}}}\n" * (n in UNEVEN)
            for n in range(1, 21)
        ),
        {"loss": [(n, n + 0.5) for n in UNEVEN]},
    ),
    "one dict below a bar is missing": (
        "".join(
            f" {n}%|# | {n}/20 [00:01<00:10, 5it/s]\n" + f"{{'loss': {n}.5, 'epoch': {n / 20}}}\n" * (n != 9)
            for n in range(1, 21)
        ),
        {"loss": [(n, n + 0.5) for n in range(1, 21) if n != 9]},
    ),
    **{
        f"blocks above {ruler}": (
            "".join(
                f"time elapsed: 0:0{n}:03\nnum of updates: {n}0\nret loss: {n}.5\naction loss: 1{n}\n{ruler}\n"
                for n in range(1, 6)
            ),
            {"loss": [(10 * n, n + 0.5) for n in range(1, 6)]},
        )
        for ruler in ("====", "====================")
    },
    **{
        f"a step below several losses, {line.partition(':')[0]}": (
            "".join(
                line.format(n) + f"[INFO] [logging.py:96:log_dist] [Rank 0] step={n}, lr=[0.{n:02d}]\n" * (not n % 5)
                for n in range(1, 21)
            ),
            {"loss": [(n, n + 0.5) for n in range(1, 21)], "lr": [(n, n / 100) for n in (5, 10, 15, 20)]},
        )
        for line in ("Loss: {0}.5, Acc: 0.1\n", "Epoch 0, Loss: {0}.5\n")
    },
}
