#!/usr/bin/env bash
# Trains, and watches the log meanwhile: sbatch slurm-watch.sh srun python train.py
#
#   STABTREE_RUN    the log, or the folder of the run; it need not be there yet
#   STABTREE_STOP   1 to end the training at a critical finding, which else is only told
#
# It ends as the training did, with 143 where that was ended. What becomes of the watch itself never ends a training.
set -u

until_found=()
[[ ${STABTREE_STOP:-} == 1 ]] && until_found=(--until-found)

"$@" &
training=$!
stabtree watch --quiet --fail-on critical "${until_found[@]}" -- "${STABTREE_RUN:-run.jsonl}" &
watching=$!

wait -n "$training" "$watching"
if [[ ${STABTREE_STOP:-} == 1 ]] && kill -0 "$training" 2> /dev/null; then
  wait "$watching"
  code=$?
  if [[ $code == 1 ]]; then
    echo "stabtree: the training is ended"
    kill "$training"
  fi
fi

wait "$training"
code=$?
kill "$watching" 2> /dev/null && wait "$watching"
exit "$code"
