-- A store as schema version 5 had it: written by that version, dumped since. It is never edited.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE environments (
  id          TEXT PRIMARY KEY,
  environment TEXT NOT NULL
, machine TEXT, version TEXT) STRICT;
INSERT INTO environments VALUES('d330fe486886dc9d764494887ab4f6e2','{"cores":"2","cpu":"Example CPU","cpu_flags":"avx2 fma","git_commit":"0123abc","version":"0.1.0"}','Example CPU; avx2 fma; 2 cores','0.1.0 (0123abc)');
INSERT INTO environments VALUES('dc7048f8f8747f561349cde127705c16','{}','','');
CREATE TABLE job_points (
  job_key  TEXT NOT NULL REFERENCES jobs (key),
  ordinal  INTEGER NOT NULL,
  point_id TEXT NOT NULL REFERENCES points (id),
  attempt  INTEGER NOT NULL CHECK (attempt > 0),
  PRIMARY KEY (job_key, point_id),
  UNIQUE (point_id, attempt)
) STRICT, WITHOUT ROWID;
INSERT INTO job_points VALUES('rl-1',0,'44c1ce278b4cba9ab3f3e7c991265125',1);
INSERT INTO job_points VALUES('rl-2',0,'00e2baeacffcec622ed11e5afde6259e',1);
INSERT INTO job_points VALUES('rl-3',0,'00e2baeacffcec622ed11e5afde6259e',2);
INSERT INTO job_points VALUES('rl-4',0,'f991dfd0d63c7f6cfa8feab5b7f4e6cf',1);
INSERT INTO job_points VALUES('rl-5',0,'45329239e36d63fac96f9e075992117f',2);
CREATE TABLE jobs (
  number            INTEGER PRIMARY KEY,
  key               TEXT NOT NULL UNIQUE,
  sweep             TEXT NOT NULL REFERENCES sweeps (name),
  launcher          TEXT NOT NULL,
  native_id         TEXT NOT NULL,
  job_dir           TEXT NOT NULL,
  state             TEXT NOT NULL
                    CHECK (state IN ('intent', 'submitted', 'running', 'ended', 'lost', 'cancelled')),
  created_unix_ns   INTEGER NOT NULL,
  submitted_unix_ns INTEGER,
  ended_unix_ns     INTEGER,
  evidence          TEXT NOT NULL
, started_unix_ns INTEGER, campaign TEXT NOT NULL DEFAULT 'default', setup TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO jobs VALUES(1,'rl-1','engine','local','native','/nowhere/rl-1','ended',10,20,30,'{"exit_code":"0"}',NULL,'default','{"cpus":0,"trainer":["ridgeline-train"]}');
INSERT INTO jobs VALUES(2,'rl-2','engine','local','native','/nowhere/rl-2','ended',10,20,30,'{"exit_code":"0"}',NULL,'default','{"cpus":0,"trainer":["ridgeline-train"]}');
INSERT INTO jobs VALUES(3,'rl-3','engine','local','native','/nowhere/rl-3','ended',10,20,30,'{"exit_code":"0"}',NULL,'default','{"cpus":0,"trainer":["ridgeline-train"]}');
INSERT INTO jobs VALUES(4,'rl-4','own','local','native','/nowhere/rl-4','ended',10,20,30,'{"exit_code":"0"}',NULL,'default','{"cpus":2,"trainer":["train.sh","--fast"]}');
INSERT INTO jobs VALUES(5,'rl-5','own','local','','/nowhere/rl-5','intent',40,NULL,NULL,'{}',NULL,'default','{"cpus":2,"trainer":["train.sh","--fast"]}');
CREATE TABLE points (
  id   TEXT PRIMARY KEY,
  spec TEXT NOT NULL
, amax_history INTEGER, batch_size INTEGER, beta1 REAL, beta2 REAL, bf16_first_layers INTEGER, bf16_last_layers INTEGER, checkpointing TEXT, communicator TEXT, data TEXT, device TEXT, dropout REAL, epsilon REAL, family TEXT, ffn INTEGER, grad_accumulation INTEGER, grad_clip REAL, head_dim INTEGER, heads INTEGER, hidden INTEGER, kv_heads INTEGER, layers INTEGER, learning_rate REAL, learning_rate_min REAL, lr_warmup_steps INTEGER, model TEXT, norm_eps REAL, optimizer TEXT, positions INTEGER, precision TEXT, primary_weights TEXT, ranks INTEGER, repeats INTEGER, rope_theta REAL, scaling TEXT, schedule TEXT, seed INTEGER, seq_length INTEGER, shard TEXT, state_precision TEXT, steps INTEGER, tied_head INTEGER, vocab INTEGER, warmup_steps INTEGER, weight_decay REAL) STRICT;
INSERT INTO points VALUES('44c1ce278b4cba9ab3f3e7c991265125','{"batch_size":1,"beta1":0.9,"beta2":0.95,"checkpointing":"none","communicator":"self","data":"synthetic","device":"cpu","dropout":0,"epsilon":1e-08,"family":"llama","ffn":704,"grad_accumulation":1,"grad_clip":0,"head_dim":64,"heads":4,"hidden":256,"kv_heads":2,"layers":8,"learning_rate":3e-04,"learning_rate_min":0,"lr_warmup_steps":0,"model":"llama-10m","norm_eps":1e-05,"optimizer":"adamw","positions":0,"precision":"bf16","ranks":1,"repeats":1,"rope_theta":5e+05,"schedule":"constant","seed":1,"seq_length":512,"shard":"none","state_precision":"fp32","steps":5,"tied_head":true,"version":1,"vocab":16384,"warmup_steps":2,"weight_decay":0.1}',0,1,0.9000000000000000222,0.94999999999999995559,0,0,'none','self','synthetic','cpu',0.0,1.0000000000000000209e-08,'llama',704,1,0.0,64,4,256,2,8,0.00029999999999999997371,0.0,0,'llama-10m',1.0000000000000000817e-05,'adamw',0,'bf16','high_precision',1,1,500000.0,'none','constant',1,512,'none','fp32',5,1,16384,2,0.10000000000000000555);
INSERT INTO points VALUES('00e2baeacffcec622ed11e5afde6259e','{"batch_size":1,"beta1":0.9,"beta2":0.95,"checkpointing":"none","communicator":"self","data":"synthetic","device":"cpu","dropout":0,"epsilon":1e-08,"family":"llama","ffn":704,"grad_accumulation":1,"grad_clip":0,"head_dim":64,"heads":4,"hidden":256,"kv_heads":2,"layers":8,"learning_rate":3e-04,"learning_rate_min":0,"lr_warmup_steps":0,"model":"llama-10m","norm_eps":1e-05,"optimizer":"adamw","positions":0,"precision":"bf16","ranks":1,"repeats":1,"rope_theta":5e+05,"schedule":"constant","seed":2,"seq_length":512,"shard":"none","state_precision":"fp32","steps":5,"tied_head":true,"version":1,"vocab":16384,"warmup_steps":2,"weight_decay":0.1}',0,1,0.9000000000000000222,0.94999999999999995559,0,0,'none','self','synthetic','cpu',0.0,1.0000000000000000209e-08,'llama',704,1,0.0,64,4,256,2,8,0.00029999999999999997371,0.0,0,'llama-10m',1.0000000000000000817e-05,'adamw',0,'bf16','high_precision',1,1,500000.0,'none','constant',2,512,'none','fp32',5,1,16384,2,0.10000000000000000555);
INSERT INTO points VALUES('45329239e36d63fac96f9e075992117f','{"batch_size":1,"beta1":0.9,"beta2":0.95,"checkpointing":"none","communicator":"self","data":"synthetic","device":"cpu","dropout":0,"epsilon":1e-08,"family":"llama","ffn":704,"grad_accumulation":1,"grad_clip":0,"head_dim":64,"heads":4,"hidden":256,"kv_heads":2,"layers":8,"learning_rate":3e-04,"learning_rate_min":0,"lr_warmup_steps":0,"model":"llama-10m","norm_eps":1e-05,"optimizer":"adamw","positions":0,"precision":"bf16","ranks":1,"repeats":1,"rope_theta":5e+05,"schedule":"constant","seed":3,"seq_length":512,"shard":"none","state_precision":"fp32","steps":5,"tied_head":true,"version":1,"vocab":16384,"warmup_steps":2,"weight_decay":0.1}',0,1,0.9000000000000000222,0.94999999999999995559,0,0,'none','self','synthetic','cpu',0.0,1.0000000000000000209e-08,'llama',704,1,0.0,64,4,256,2,8,0.00029999999999999997371,0.0,0,'llama-10m',1.0000000000000000817e-05,'adamw',0,'bf16','high_precision',1,1,500000.0,'none','constant',3,512,'none','fp32',5,1,16384,2,0.10000000000000000555);
INSERT INTO points VALUES('f991dfd0d63c7f6cfa8feab5b7f4e6cf','{"batch_size":1,"beta1":0.9,"beta2":0.95,"checkpointing":"none","communicator":"self","data":"synthetic","device":"cpu","dropout":0,"epsilon":1e-08,"family":"llama","ffn":704,"grad_accumulation":1,"grad_clip":0,"head_dim":64,"heads":4,"hidden":256,"kv_heads":2,"layers":8,"learning_rate":3e-04,"learning_rate_min":0,"lr_warmup_steps":0,"model":"llama-10m","norm_eps":1e-05,"optimizer":"adamw","positions":0,"precision":"bf16","ranks":1,"repeats":1,"rope_theta":5e+05,"schedule":"constant","seed":4,"seq_length":512,"shard":"none","state_precision":"fp32","steps":5,"tied_head":true,"version":1,"vocab":16384,"warmup_steps":2,"weight_decay":0.1}',0,1,0.9000000000000000222,0.94999999999999995559,0,0,'none','self','synthetic','cpu',0.0,1.0000000000000000209e-08,'llama',704,1,0.0,64,4,256,2,8,0.00029999999999999997371,0.0,0,'llama-10m',1.0000000000000000817e-05,'adamw',0,'bf16','high_precision',1,1,500000.0,'none','constant',4,512,'none','fp32',5,1,16384,2,0.10000000000000000555);
CREATE TABLE results (
  number                         INTEGER PRIMARY KEY,
  point_id                       TEXT NOT NULL REFERENCES points (id),
  attempt                        INTEGER NOT NULL CHECK (attempt > 0),
  job_key                        TEXT,
  retry                          INTEGER NOT NULL DEFAULT 0 CHECK (retry IN (0, 1)),
  status                         TEXT NOT NULL,
  message                        TEXT NOT NULL,
  hint                           TEXT NOT NULL,
  evidence                       TEXT NOT NULL,
  provenance                     TEXT NOT NULL,
  emulated                       INTEGER NOT NULL CHECK (emulated IN (0, 1)),
  device_name                    TEXT NOT NULL,
  communicator_name              TEXT NOT NULL,
  parameters                     INTEGER,
  tokens_per_step                INTEGER,
  steady_tokens_per_s            REAL,
  cold_tokens_per_s              REAL,
  step_median_ns                 INTEGER,
  step_p95_ns                    INTEGER,
  step_cv                        REAL,
  all_steps_ns                   TEXT NOT NULL,
  loss                           TEXT NOT NULL,
  grad_norm                      TEXT NOT NULL,
  planned_peak_bytes             INTEGER,
  planned_bytes_by_category      TEXT NOT NULL,
  rss_peak_bytes                 INTEGER,
  model_causal_flops_per_step    REAL,
  model_noncausal_flops_per_step REAL,
  executed_flops_per_step        REAL,
  started_unix_ns                INTEGER,
  ended_unix_ns                  INTEGER,
  command                        TEXT NOT NULL,
  environment_id                 TEXT NOT NULL REFERENCES environments (id), skipped_steps INTEGER, campaign TEXT NOT NULL DEFAULT 'default', setup TEXT NOT NULL DEFAULT '', device_peak_bytes INTEGER, cores_busy_share REAL, cores_others_share REAL, cores_throttles INTEGER, repeat INTEGER,
  UNIQUE (point_id, attempt),
  FOREIGN KEY (job_key, point_id) REFERENCES job_points (job_key, point_id)
) STRICT;
INSERT INTO results VALUES(1,'44c1ce278b4cba9ab3f3e7c991265125',1,'rl-1',0,'ok','','','{}','measured',0,'Example CPU (2 cores)','self',10000000,512,1000.5,900.24999999999999996,505,510,0.010000000000000000208,'[900,500,510]','[9.5,9.25,9.0]','[1.5,1.25,1.0]',600,'{"activations":500,"parameters":100}',1000,NULL,NULL,NULL,1700000000000000100,1700000000000000200,'/usr/bin/ridgeline-train --spec 44c1ce278b4cba9ab3f3e7c991265125','d330fe486886dc9d764494887ab4f6e2',0,'default','{"cpus":0,"trainer":["ridgeline-train"]}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO results VALUES(2,'00e2baeacffcec622ed11e5afde6259e',1,'rl-2',0,'lost','it ended','','{}','measured',0,'','self',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]','[]','[]',NULL,'{}',NULL,NULL,NULL,NULL,1700000000000000100,1700000000000000200,'/usr/bin/ridgeline-train --spec 00e2baeacffcec622ed11e5afde6259e','dc7048f8f8747f561349cde127705c16',NULL,'default','{"cpus":0,"trainer":["ridgeline-train"]}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO results VALUES(3,'00e2baeacffcec622ed11e5afde6259e',2,'rl-3',0,'crashed','it ended','','{}','measured',0,'','self',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]','[]','[]',NULL,'{}',NULL,NULL,NULL,NULL,1700000000000000100,1700000000000000200,'/usr/bin/ridgeline-train --spec 00e2baeacffcec622ed11e5afde6259e','dc7048f8f8747f561349cde127705c16',NULL,'default','{"cpus":0,"trainer":["ridgeline-train"]}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO results VALUES(4,'f991dfd0d63c7f6cfa8feab5b7f4e6cf',1,'rl-4',0,'ok','','','{}','measured',0,'Example CPU (2 cores)','self',10000000,512,1000.5,900.24999999999999996,505,510,0.010000000000000000208,'[900,500,510]','[9.5,9.25,9.0]','[1.5,1.25,1.0]',600,'{"activations":500,"parameters":100}',1000,NULL,NULL,NULL,1700000000000000100,1700000000000000200,'/opt/train.sh --fast --spec f991dfd0d63c7f6cfa8feab5b7f4e6cf','d330fe486886dc9d764494887ab4f6e2',0,'default','{"cpus":2,"trainer":["train.sh","--fast"]}',NULL,NULL,NULL,NULL,NULL);
INSERT INTO results VALUES(5,'45329239e36d63fac96f9e075992117f',1,NULL,0,'skipped_predicted_oom','predicted to need more','','{"wanted_bytes":"12"}','predicted',0,'','self',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]','[]','[]',NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,'','dc7048f8f8747f561349cde127705c16',NULL,'default','{"cpus":0,"trainer":["ridgeline-train"]}',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE sweep_points (
  sweep    TEXT NOT NULL REFERENCES sweeps (name),
  ordinal  INTEGER NOT NULL,
  point_id TEXT NOT NULL REFERENCES points (id), setup TEXT,
  PRIMARY KEY (sweep, ordinal),
  UNIQUE (sweep, point_id)
) STRICT, WITHOUT ROWID;
INSERT INTO sweep_points VALUES('engine',0,'44c1ce278b4cba9ab3f3e7c991265125',NULL);
INSERT INTO sweep_points VALUES('engine',1,'00e2baeacffcec622ed11e5afde6259e',NULL);
INSERT INTO sweep_points VALUES('engine',2,'45329239e36d63fac96f9e075992117f',NULL);
INSERT INTO sweep_points VALUES('own',0,'45329239e36d63fac96f9e075992117f',NULL);
INSERT INTO sweep_points VALUES('own',1,'f991dfd0d63c7f6cfa8feab5b7f4e6cf',NULL);
CREATE TABLE sweeps (
  name            TEXT PRIMARY KEY,
  description     TEXT NOT NULL,
  file            TEXT NOT NULL,
  text            TEXT NOT NULL,
  created_unix_ns INTEGER NOT NULL
, campaign TEXT NOT NULL DEFAULT 'default', setup TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO sweeps VALUES('engine','d','engine.yaml',replace('name: engine\ndefaults: {model: llama-10m}\nmatrix: {seed: [1, 2, 3]}\n','\n',char(10)),5,'default','{"cpus":0,"trainer":["ridgeline-train"]}');
INSERT INTO sweeps VALUES('own','d','own.yaml',replace('name: own\ndefaults: {model: llama-10m}\nmatrix: {seed: [3, 4]}\nlaunch: {trainer: [/opt/train.sh, --fast], cpus: 2}\n','\n',char(10)),6,'default','{"cpus":2,"trainer":["train.sh","--fast"]}');
CREATE INDEX sweep_points_by_point ON sweep_points (point_id);
CREATE INDEX live_jobs ON jobs (state) WHERE state IN ('intent', 'submitted', 'running');
CREATE INDEX results_by_measurement ON results (point_id, setup, campaign, attempt, retry, status, ended_unix_ns);
CREATE VIEW latest AS SELECT * FROM results AS m WHERE number = (SELECT r.number FROM results AS r WHERE r.point_id = m.point_id AND r.setup = m.setup AND r.attempt = (SELECT max(attempt) FROM results WHERE point_id = r.point_id AND setup = r.setup AND campaign = r.campaign) ORDER BY (r.retry = 0 AND r.status IN ('ok', 'oom_device', 'oom_host', 'timeout', 'invalid', 'diverged', 'crashed', 'skipped_predicted_oom')) DESC, ifnull(r.ended_unix_ns, 0) DESC, r.attempt DESC LIMIT 1);
CREATE VIEW measured AS SELECT * FROM results AS m WHERE (m.retry = 0 AND m.status IN ('ok', 'oom_device', 'oom_host', 'timeout', 'invalid', 'diverged', 'crashed', 'skipped_predicted_oom')) OR m.attempt = (SELECT max(attempt) FROM results WHERE point_id = m.point_id AND setup = m.setup AND campaign = m.campaign);
CREATE VIEW runs AS SELECT p.id AS point_id, r.number AS result, p.amax_history, p.batch_size, p.beta1, p.beta2, p.bf16_first_layers, p.bf16_last_layers, p.checkpointing, p.communicator, p.data, p.device, p.dropout, p.epsilon, p.family, p.ffn, p.grad_accumulation, p.grad_clip, p.head_dim, p.heads, p.hidden, p.kv_heads, p.layers, p.learning_rate, p.learning_rate_min, p.lr_warmup_steps, p.model, p.norm_eps, p.optimizer, p.positions, p.precision, p.primary_weights, p.ranks, p.repeats, p.rope_theta, p.scaling, p.schedule, p.seed, p.seq_length, p.shard, p.state_precision, p.steps, p.tied_head, p.vocab, p.warmup_steps, p.weight_decay, r.attempt, r.job_key, r.retry, r.status, r.message, r.hint, r.evidence, r.provenance, r.emulated, r.device_name, r.communicator_name, r.parameters, r.tokens_per_step, r.steady_tokens_per_s, r.cold_tokens_per_s, r.step_median_ns, r.step_p95_ns, r.step_cv, r.all_steps_ns, r.loss, r.grad_norm, r.planned_peak_bytes, r.planned_bytes_by_category, r.rss_peak_bytes, r.model_causal_flops_per_step, r.model_noncausal_flops_per_step, r.executed_flops_per_step, r.started_unix_ns, r.ended_unix_ns, r.command, r.skipped_steps, r.campaign, r.setup, r.device_peak_bytes, r.cores_busy_share, r.cores_others_share, r.cores_throttles, r.repeat, r.planned_bytes_by_category ->> '$.parameters' AS planned_parameters_bytes, r.planned_bytes_by_category ->> '$.gradients' AS planned_gradients_bytes, r.planned_bytes_by_category ->> '$.optimizer' AS planned_optimizer_bytes, r.planned_bytes_by_category ->> '$.activations' AS planned_activations_bytes, r.planned_bytes_by_category ->> '$.workspace' AS planned_workspace_bytes, r.planned_bytes_by_category ->> '$.logits' AS planned_logits_bytes, (SELECT group_concat(value, ' ') FROM json_each(r.setup, '$.trainer')) AS trainer, r.setup ->> '$.cpus' AS cpus, e.machine, e.version, p.spec, e.environment FROM latest AS r JOIN points AS p ON p.id = r.point_id LEFT JOIN environments AS e ON e.id = r.environment_id;
CREATE VIEW measurements AS SELECT p.id AS point_id, r.number AS result, p.amax_history, p.batch_size, p.beta1, p.beta2, p.bf16_first_layers, p.bf16_last_layers, p.checkpointing, p.communicator, p.data, p.device, p.dropout, p.epsilon, p.family, p.ffn, p.grad_accumulation, p.grad_clip, p.head_dim, p.heads, p.hidden, p.kv_heads, p.layers, p.learning_rate, p.learning_rate_min, p.lr_warmup_steps, p.model, p.norm_eps, p.optimizer, p.positions, p.precision, p.primary_weights, p.ranks, p.repeats, p.rope_theta, p.scaling, p.schedule, p.seed, p.seq_length, p.shard, p.state_precision, p.steps, p.tied_head, p.vocab, p.warmup_steps, p.weight_decay, r.attempt, r.job_key, r.retry, r.status, r.message, r.hint, r.evidence, r.provenance, r.emulated, r.device_name, r.communicator_name, r.parameters, r.tokens_per_step, r.steady_tokens_per_s, r.cold_tokens_per_s, r.step_median_ns, r.step_p95_ns, r.step_cv, r.all_steps_ns, r.loss, r.grad_norm, r.planned_peak_bytes, r.planned_bytes_by_category, r.rss_peak_bytes, r.model_causal_flops_per_step, r.model_noncausal_flops_per_step, r.executed_flops_per_step, r.started_unix_ns, r.ended_unix_ns, r.command, r.skipped_steps, r.campaign, r.setup, r.device_peak_bytes, r.cores_busy_share, r.cores_others_share, r.cores_throttles, r.repeat, r.planned_bytes_by_category ->> '$.parameters' AS planned_parameters_bytes, r.planned_bytes_by_category ->> '$.gradients' AS planned_gradients_bytes, r.planned_bytes_by_category ->> '$.optimizer' AS planned_optimizer_bytes, r.planned_bytes_by_category ->> '$.activations' AS planned_activations_bytes, r.planned_bytes_by_category ->> '$.workspace' AS planned_workspace_bytes, r.planned_bytes_by_category ->> '$.logits' AS planned_logits_bytes, (SELECT group_concat(value, ' ') FROM json_each(r.setup, '$.trainer')) AS trainer, r.setup ->> '$.cpus' AS cpus, e.machine, e.version, p.spec, e.environment FROM measured AS r JOIN points AS p ON p.id = r.point_id LEFT JOIN environments AS e ON e.id = r.environment_id;
CREATE VIEW sweep_runs AS SELECT s.sweep, s.ordinal, runs.* FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep JOIN runs ON runs.point_id = s.point_id AND runs.setup = ifnull(s.setup, w.setup);
CREATE VIEW series AS SELECT point_id, number AS result, 'step_ns' AS figure, key + 1 AS step, value FROM latest, json_each(all_steps_ns) UNION ALL SELECT point_id, number AS result, 'loss' AS figure, key + 1 AS step, value FROM latest, json_each(loss) UNION ALL SELECT point_id, number AS result, 'grad_norm' AS figure, key + 1 AS step, value FROM latest, json_each(grad_norm);
CREATE VIEW spreads AS SELECT point_id, setup, device_name, provenance, emulated, count(*) AS times_measured, min(steady_tokens_per_s) AS steady_min_tokens_per_s, max(steady_tokens_per_s) AS steady_max_tokens_per_s FROM measured WHERE status = 'ok' AND point_id IN (SELECT point_id FROM results GROUP BY point_id, setup HAVING count(*) > 1) GROUP BY point_id, setup, device_name, provenance, emulated HAVING count(*) > 1;
COMMIT;
PRAGMA application_id = 1382311756;
PRAGMA user_version = 5;
