"""Compares predictions with measurements: compare.py PREDICTED MEASURED, two files in JSON for the same points.

PREDICTED is the output of `ridgeline predict`, MEASURED that of `ridgeline query`. If a point was measured several times,
its median counts. Prints
- the mean absolute error of step times, and its 90th percentile;
- Kendall's tau of throughput;
- the share of 90 % intervals that contain the point's median, and the share of single measurements in their interval;
- how far measurements lie from their own median;
- the median of predicted / measured for each family, precision, checkpointing policy, number of ranks and sharding.
"""
import json
import math
import sys


def kendall(pairs):
    """Returns Kendall's tau-a of the pairs: 1 if both sides rank all points alike, -1 if they rank them in reverse."""
    concordant = discordant = 0
    for i, (a, b) in enumerate(pairs):
        for c, d in pairs[:i]:
            sign = (a - c) * (b - d)
            concordant += sign > 0
            discordant += sign < 0
    return (concordant - discordant) / max(concordant + discordant, 1)


def contains(p, m):
    """Returns whether the predicted interval contains the measured step time."""
    return p["step_low_ns"] <= m["step_ns"] <= p["step_high_ns"]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        predicted = {row["point"]: row for row in json.load(file)}
    with open(sys.argv[2], encoding="utf-8") as file:
        runs = [row for row in json.load(file) if row["point_id"] in predicted]
    rounds = {}
    for row in sorted(runs, key=lambda row: row["step_ns"]):
        rounds.setdefault(row["point_id"], []).append(row)
    points = [(predicted[point], rows[len(rows) // 2]) for point, rows in rounds.items()]
    if not points:
        sys.exit("no point was both predicted and measured")
    errors = sorted(abs(p["step_ns"] / m["step_ns"] - 1) for p, m in points)
    held = sum(contains(p, m) for p, m in points)
    held_of_runs = sum(contains(predicted[row["point_id"]], row) for row in runs)
    apart = sorted(abs(row["step_ns"] / rows[len(rows) // 2]["step_ns"] - 1)
                   for rows in rounds.values() if len(rows) > 1 for row in rows)
    print(f"points                  {len(points)}, measured {len(runs)} times")
    print(f"mean absolute error     {100 * sum(errors) / len(errors):.1f} %   (<= 8)")
    print(f"90th percentile         {100 * errors[math.ceil(0.9 * len(errors)) - 1]:.1f} %   (<= 15)")
    print(f"worst                   {100 * errors[-1]:.1f} %")
    tau = kendall([(p["steady_tokens_per_s"], m["steady_tokens_per_s"]) for p, m in points])
    print(f"Kendall's tau           {tau:.3f}   (>= 0.9)")
    print(f"medians in their 90 % interval {100 * held / len(points):.0f} %   (>= 85)")
    print(f"measurements in their interval {100 * held_of_runs / len(runs):.0f} %")
    if apart:
        print(f"distance from the own median {100 * sum(apart) / len(apart):.1f} %, "
              f"90th percentile {100 * apart[len(apart) * 9 // 10]:.1f} %")
    print("median of predicted / measured:")
    for field in ("family", "precision", "checkpointing", "ranks", "shard"):
        by = {}
        for p, m in points:
            by.setdefault(m[field], []).append(p["step_ns"] / m["step_ns"])
        print(f"  {field:13} " + "  ".join(f"{k} {sorted(v)[len(v) // 2]:.3f} ({len(v)})" for k, v in sorted(by.items())))


if __name__ == "__main__":
    main()
