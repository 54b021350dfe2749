-- What the record is worth: which build a report belongs to, what a failure says about its build, and about its test case.

-- Build numbers repeat between branches and jobs: a key names an execution together with commit and branch.
drop index execution_key;
create index execution_by_key on execution (project_id, key, id desc) where key is not null;
create index execution_by_pull_request on execution (project_id, pull_request, id desc) where pull_request is not null;
drop index execution_by_commit;
-- A short hash finds the long ones that begin with it, whatever the collation.
create index execution_by_commit on execution (project_id, lower(commit) text_pattern_ops, id desc)
  where commit is not null;

-- A short hash is the long one that begins with it.
create function is_same_commit(a text, b text) returns boolean language sql immutable parallel safe as $$
  select lower(a) = lower(b)
    or a ~ '^[0-9a-fA-F]{7,64}$' and b ~ '^[0-9a-fA-F]{7,64}$'
      and (starts_with(lower(a), lower(b)) or starts_with(lower(b), lower(a)))
$$;
