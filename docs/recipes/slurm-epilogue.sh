#!/usr/bin/env bash
# Diagnoses the run of a Slurm job step once it has ended: srun --epilog=slurm-epilogue.sh python train.py
#
#   STABTREE_RUN      the log, or the folder of the run; else the folder that the job was submitted from
#   STABTREE_REPORT   where the report goes; else stabtree-JOBID.html beside it
#
# It runs as the user, not as root. It never fails: an epilogue that does takes the node out of service.
set -u

run=${STABTREE_RUN:-${SLURM_SUBMIT_DIR:-$PWD}}
job=${SLURM_JOB_ID:-job}
folder=$run
[[ -d $folder ]] || folder=$(dirname -- "$run")
report=${STABTREE_REPORT:-$folder/stabtree-$job.html}

timeout 300 stabtree diagnose --quiet "--output=html=$report" -- "$run"
code=$?
case $code in
  0) ;;
  1) echo "stabtree: something is wrong with job $job, see $report" ;;
  *) echo "stabtree: job $job was not judged (exit code $code)" ;;
esac
exit 0
