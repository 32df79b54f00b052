#!/bin/sh
# A TaskProlog for Slurm: has Reprise in every task of the cluster, or of the partitions named below.
# slurm.conf: TaskProlog=/etc/slurm/task-prolog.sh. What it prints as `export NAME=value` is set for the task.
# A user turns it off with REPRISE_DISABLE=1 in the job's environment.

library=${REPRISE_LIBRARY:-/opt/reprise/lib/libreprise.so} # libreprise-host.so for the memory of the host
partitions=""                                              # "gpu gpu-long"; empty: all

# As it is: echo would read what begins with a backslash in a folder's name. A folder whose name has a line break cannot be
# set so: what follows would be a line of its own.
set_for_task() {
  case $1 in
    *"
"*) ;;
    *) printf 'export %s\n' "$1" ;;
  esac
}

case ${REPRISE_DISABLE:-0} in 0) ;; *) exit 0 ;; esac
if [ -n "$partitions" ]; then
  case " $partitions " in *" ${SLURM_JOB_PARTITION:-} "*) ;; *) exit 0 ;; esac
fi
[ -r "$library" ] || exit 0 # a node without it runs jobs as before

case ":${LD_PRELOAD:-}:" in
  *":$library:"*) ;; # handed on by a job that has it
  *) set_for_task "LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}" ;;
esac
# Only the driver sees every tensor then; what the user has set stays. `reprise run` sets the same.
case $library in
  *libreprise.so)
    [ -n "${PYTORCH_CUDA_ALLOC_CONF:-}${PYTORCH_ALLOC_CONF:-}${PYTORCH_NO_CUDA_MEMORY_CACHING:-}" ] ||
      set_for_task "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"
    [ -n "${TF_GPU_ALLOCATOR:-}" ] || set_for_task "TF_GPU_ALLOCATOR=cuda_malloc_async"
    [ -n "${XLA_PYTHON_CLIENT_ALLOCATOR:-}" ] || set_for_task "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"
    [ -n "${XLA_PYTHON_CLIENT_PREALLOCATE:-}" ] || set_for_task "XLA_PYTHON_CLIENT_PREALLOCATE=false"
    ;;
esac
# A percent sign of the folder's own is doubled: one before a letter stands for something.
[ -n "${REPRISE_OUT:-}" ] || set_for_task "REPRISE_OUT=$(printf %s "${SLURM_SUBMIT_DIR:-.}" | sed 's/%/%%/g')/reprise-out/%j"
