"""Compares planned memory with the memory that runs took.

  compare_memory.py PLAN RUNS PLAN_OOM RUNS_OOM

PLAN, RUNS: the output of `ridgeline plan SWEEP` and of `ridgeline query` for its runs, in JSON. PLAN_OOM, RUNS_OOM: the
same for a sweep with a memory limit, whose points may not fit. The exit code is 1 if memory differs from the plan.
"""
import json
import sys


SET_ASIDE = 96_000_000  # the bytes that the plan reserves for a process beside its slab (kProcessBaseBytes)


def read(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)


def main():
    plan = {row["point"]: row for row in read(sys.argv[1])}
    runs = read(sys.argv[2])
    ok = [run for run in runs if run["status"] == "ok"]
    print(f"points                         {len(plan)}, {len(ok)} ran")
    same = sum(run["planned_peak_bytes"] == plan[run["point_id"]]["predicted_peak_bytes"] for run in ok)
    print(f"planned slab = used slab       {same} of {len(ok)}")
    # The resident memory of processes beside their slab, by the number of ranks.
    beside = {}
    for run in ok:
        beside.setdefault(run["ranks"], []).append(run["rss_peak_bytes"] - run["planned_peak_bytes"])
    middle = {ranks: sorted(sizes)[len(sizes) // 2] for ranks, sizes in beside.items()}
    for ranks, sizes in sorted(beside.items()):
        print(f"resident beside the slab       {ranks} rank(s): {min(sizes) / 1e6:.1f} to {max(sizes) / 1e6:.1f} MB, median"
              f" {middle[ranks] / 1e6:.1f} MB ({SET_ASIDE / 1e6:.0f} MB are reserved)")
    errors = sorted(abs((run["planned_peak_bytes"] + middle[run["ranks"]]) / run["rss_peak_bytes"] - 1) for run in ok)
    within = sum(error <= 0.03 for error in errors)
    print(f"slab + median within 3 % of the resident peak  {within} of {len(ok)}; mean {100 * sum(errors) / len(errors):.2f} %,"
          f" worst {100 * errors[-1]:.2f} %")

    plan = {row["point"]: row for row in read(sys.argv[3])}
    ends = {"to fit": {}, "not to fit": {}, "to fit only without the reserve": {}}
    for run in read(sys.argv[4]):
        point = plan[run["point_id"]]
        predicted = "not to fit"
        if point["verdict"] == "fits":
            predicted = "to fit"
        elif point["predicted_peak_bytes"] <= point["available_bytes"] + SET_ASIDE:
            predicted = "to fit only without the reserve"
        ends[predicted][run["status"]] = ends[predicted].get(run["status"], 0) + 1
    for predicted, end in ends.items():
        print(f"predicted {predicted}: ended {end}")
    as_planned = same == within == len(ok) == len(runs)
    if not as_planned or set(ends["to fit"]) - {"ok"} or set(ends["not to fit"]) - {"oom_host"}:
        sys.exit("memory differs from the plan")


if __name__ == "__main__":
    main()
