-- Shards and tasks run side by side: how long a run took is not the sum of its reports.

alter table attempt
  add column duration_ms bigint, -- of the report; null: stored before this migration
  add column started_at timestamptz(3); -- when its tests began, as far as a clock can be trusted; null: unknown

-- From here on duration_ms is the wall time. Runs that were stored before keep the sum of their reports as both.
alter table test_run
  add column machine_ms bigint, -- of all attempts together; null: the same as duration_ms
  add column tests_started_at timestamptz(3); -- when the tests of its first attempts began; null: unknown
