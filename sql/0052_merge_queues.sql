-- A build of a merge queue or a merge train belongs to a pull request and the branch that it is merged into. It has no branch
-- of its own: rules/branch.ts has the names that such builds are uploaded with.
alter table execution
  add column queue_ref text, -- the ref that the merge queue has made for the build; branch is null then
  add column base_branch text; -- of a build of a merge queue: the branch that is merged into

update execution e set queue_ref = e.branch, branch = null, base_branch = coalesce(q.parts[1], p.default_branch),
  pull_request = coalesce(e.pull_request, q.parts[2])
from (
  select project_id, id, coalesce(
    regexp_match(branch, '^gh-readonly-queue/(.+)/pr-([0-9]{1,10})-[0-9a-f]{7,64}$'),
    array[null] || regexp_match(branch, '^refs/merge-requests/([0-9]{1,10})/train$')) as parts
  from execution where branch like 'gh-readonly-queue/%' or branch like 'refs/merge-requests/%'
) q join stored_project p on p.id = q.project_id
where e.project_id = q.project_id and e.id = q.id and q.parts is not null;

delete from red_task where branch like 'gh-readonly-queue/%' or branch like 'refs/merge-requests/%/train';
