-- A build of a merge queue or a merge train belongs to a pull request and the branch that it is merged into. It has no branch
-- of its own: rules/branch.ts has the names that such builds are uploaded with.
alter table execution
  add column queue_ref text, -- the ref that the merge queue has made for the build; branch is null then
  add column base_branch text; -- of a build of a merge queue: the branch that is merged into

update execution e set queue_ref = e.branch, branch = null, base_branch = coalesce(q.base, p.default_branch),
  pull_request = coalesce(e.pull_request, q.number)
from (
  select project_id, id, github[1] as base, coalesce(github[2], gitlab[1]) as number
  from execution,
    regexp_match(branch, '^gh-readonly-queue/(.+)/pr-([0-9]{1,10})-[0-9a-f]{7,64}$') as github,
    regexp_match(branch, '^refs/merge-requests/([0-9]{1,10})/train$') as gitlab
  where branch like 'gh-readonly-queue/%' or branch like 'refs/merge-requests/%'
) q join stored_project p on p.id = q.project_id
where e.project_id = q.project_id and e.id = q.id and q.number is not null;

delete from red_task
where branch ~ '^gh-readonly-queue/.+/pr-[0-9]{1,10}-[0-9a-f]{7,64}$' or branch ~ '^refs/merge-requests/[0-9]{1,10}/train$';
