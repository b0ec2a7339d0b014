#!/bin/sh
# Runs all that the kit has on the GPU of this machine: sh run.sh [RESULTS] [FILTER...]
# A filter is a part of the name of a test or a program. docs/gpu-kit.md in the source tree says more.
# Steps end within 20 + 65 + 180 + 75 + 25 + 75 + 35 s = 475 s; a step that fails does not keep the others from running.

kit=$(cd "$(dirname "$0")" && pwd) || exit 2
results=${1:-$kit/results}
[ $# -gt 0 ] && shift
mkdir -p "$results" && results=$(cd "$results" && pwd) || exit 2
rm -f "$results"/*.json "$results"/*.tsv
size=${KIT_SIZE:-medium}
runs=${KIT_RUNS:-3}
jobs=$(nproc 2>/dev/null || echo 4)
# Processes that use the GPU at a time: each needs some of its memory for a context, cells and a journal.
workers=$jobs
[ "$workers" -le 16 ] || workers=16
programs=$workers
[ "$programs" -ge 2 ] || programs=2

# A shell that nobody has logged in to often does not have CUDA on its PATH.
if ! command -v nvcc >/dev/null && [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
    export PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
fi

# Programs of the shared runtime need the library that comes with nvcc, which may be a link to where that is.
if nvcc=$(command -v nvcc) && [ -z "$CUDARUN_CHECK_DRIVER_SIMULATED" ]; then
    cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    export LD_LIBRARY_PATH="$cuda/lib64:$cuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

# step NAME SECONDS COMMAND...: writes down how it ended.
step() {
    name=$1 most=$2
    shift 2
    echo "=== $name"
    begun=$(date +%s)
    timeout -k 5 "$most" "$@"
    code=$?
    printf '%s\t%s\t%s\n' "$name" "$code" "$(($(date +%s) - begun))" >>"$results/steps.tsv"
}

printf 'date\t%s\ncommand\tsh run.sh %s\nsize\t%s\nruns\t%s\n' \
    "$(date -u '+%Y-%m-%d %H:%M:%S UTC')" "$*" "$size" "$runs" >"$results/about.tsv"
[ -z "$CUDARUN_CHECK_DRIVER_SIMULATED" ] || printf 'simulated\tno GPU: our simulated driver\n' >>"$results/about.tsv"
nvcc --version 2>/dev/null | sed -n 's/.*release/nvcc	release/p' >>"$results/about.tsv"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/nvidia-smi	/' >>"$results/about.tsv"

step device 20 "$kit/bin/gpu-tests" --device >"$results/device.tsv"
arch=$(cut -f1 "$results/device.tsv" | tail -n 1)
case $arch in
sm_*)
    printf 'arch\t%s\ncuda of the driver\t%s\ngpu\t%s\n' "$arch" "$(tail -n 1 "$results/device.tsv" | cut -f2)" \
        "$(tail -n 1 "$results/device.tsv" | cut -f3)" >>"$results/about.tsv"
    step build 65 "$kit/bin/kit-apps" build "$kit" "$results" --arch "$arch" --jobs "$jobs" --size "$size" --budget 50 "$@"
    step race 180 "$kit/bin/gpu-tests" "$kit/tests" "$@" --jobs "$workers" \
        --budget 165 --limit 20 --hang-limit 5 --json "$results/race.json"
    step apps 75 "$kit/bin/kit-apps" run "$kit" "$results" --arch "$arch" --jobs "$programs" --budget 60 "$@"
    if [ -f "$results/manifest.json" ]; then
        step costs 25 "$kit/bin/kit-apps" costs "$kit" "$results" --arch "$arch" --jobs "$jobs" --budget 22 "$@"
        step bench 75 "$kit/bin/bench-rodinia" "$results/manifest.json" --runs "$runs" --budget 68 --limit 15 \
            --option=--device=gpu --json "$results/bench.json"
    else
        echo "no program that is measured has such a name, or there is no compiler"
    fi
    step racecheck 35 "$kit/bin/kit-apps" racecheck "$kit" "$results" --arch "$arch" --size "$size" --budget 30 "$@"
    ;;
*) echo "no GPU, so nothing was measured" ;;
esac
echo
"$kit/bin/kit-apps" summary "$results"
