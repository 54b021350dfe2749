-- Since when a server has been able to reach the database without a break: what could not be said meanwhile is not held against
-- runners and CI jobs.
alter table instance
  add column serving_at timestamptz(3), -- the last time that a server noted it
  add column serving_since timestamptz(3);
