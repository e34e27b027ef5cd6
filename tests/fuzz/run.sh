#!/usr/bin/env bash
# Fuzzes with one harness for ULY_FUZZ_SECONDS: run.sh HARNESS CORPUS [libFuzzer options]. Prints how many inputs it tried; fails where one crashes, leaks, takes 256 MB or a second of
# processor time. What it learns stays in a folder beside the harness, so that a later run goes on from there; a find is kept there too.
set -u
harness=$1 corpus=$2
shift 2
state=$harness.corpus log=$harness.log
mkdir -p "$state"
[ ! -f "$corpus.dict" ] || set -- -dict="$corpus.dict" "$@"
export ASAN_OPTIONS=quarantine_size_mb=8:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
"$harness" -max_total_time="${ULY_FUZZ_SECONDS:-15}" -timeout=25 -report_slow_units=1 -rss_limit_mb=256 -malloc_limit_mb=0 -print_final_stats=1 -artifact_prefix="$harness.find-" \
  "$@" "$state" "$corpus" >"$log" 2>&1
status=$?
[ $status = 0 ] || tail -60 "$log"
# A second on the clock may be the machine's: what counts is the processor's.
for slow in "$harness".find-slow-unit-*; do
  [ -f "$slow" ] || continue
  if (ulimit -t 2 && "$harness" "$slow" >/dev/null 2>&1); then
    rm "$slow"
  else
    echo "$slow takes more than a second"
    status=1
  fi
done
printf '%s: %s inputs\n' "${harness##*/}" "$(sed -n 's/^stat::number_of_executed_units: //p' "$log")"
exit $status
