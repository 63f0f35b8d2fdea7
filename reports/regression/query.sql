-- One row a finding of a gate, the worst first: :input is what `ridgeline gate -o json` wrote (docs/gate.md).
WITH
findings AS (
  SELECT
    f.key AS place, ifnull(f.value ->> '$.metric', '') AS metric,
    ifnull(f.value ->> '$.answer', '') AS answer, ifnull(f.value ->> '$.point', '') AS point,
    f.value ->> '$.words' AS words, f.value ->> '$.change' AS change, f.value ->> '$.change_low' AS change_low,
    f.value ->> '$.change_high' AS change_high, f.value ->> '$.detectable_change' AS detectable,
    f.value ->> '$.further_runs' AS further_runs, f.value ->> '$.base_runs' AS base_runs,
    f.value ->> '$.head_runs' AS head_runs, f.value ->> '$.base_step_ns' AS base_step_ns,
    f.value ->> '$.head_step_ns' AS head_step_ns, f.value ->> '$.base_peak_bytes' AS base_peak_bytes,
    f.value ->> '$.head_peak_bytes' AS head_peak_bytes, f.value ->> '$.setup' AS setup,
    f.value ->> '$.machine' AS machine, f.value ->> '$.point_id' AS point_id,
    ifnull(:input ->> '$.head', '') AS head, ifnull(:input ->> '$.baseline', '') AS baseline,
    ifnull(:input ->> '$.pinned', '') AS pinned
  FROM json_each(:input, '$.findings') AS f
)
SELECT
  upper(substr(metric, 1, 1)) || substr(metric, 2) || ' of ' || head || ', against '
    || iif(metric LIKE '%since pinned', pinned, baseline) AS panel,
  answer, iif(point = '', 'all', point) AS point, metric, head, baseline, pinned,
  answer || iif(point = '', '', ', ' || point) AS cell,
  -- What is red; what is only undecided is not.
  iif(answer IN ('REGRESSED', 'MISSING', 'FAILS'), lower(answer), NULL) AS failure,
  base_step_ns, head_step_ns, base_peak_bytes, head_peak_bytes, base_runs, head_runs, 100 * change AS change_percent,
  100 * change_low AS change_percent_low, 100 * change_high AS change_percent_high,
  100 * detectable AS detects_percent, further_runs,
  iif(change_low IS NULL, NULL, 'in turns') AS again,
  words || iif(further_runs > 0, '; ' || further_runs || iif(further_runs = 1, ' more run', ' more runs')
                                 || ' would decide', '') AS note,
  setup, machine, point_id, 'measured' AS provenance, 0 AS emulated, NULL AS trainer, NULL AS version,
  NULL AS environment, NULL AS command
FROM findings
-- By metric, that with the worst first.
ORDER BY min(place) OVER (PARTITION BY metric), place
