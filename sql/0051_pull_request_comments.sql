-- The comment that an integration keeps on a pull request: one for each project, edited with every news.

create table pull_request_comment (
  team_id uuid not null,
  integration_id uuid not null,
  project_id uuid not null references stored_project (id) on delete cascade,
  pull_request text not null,
  comment_id text, -- of the code host; null: it was asked to create one, and the answer is not known
  execution_id uuid not null, -- the newest one that it shows: it never goes back to an older one
  revision int not null default 1, -- counts the times that somebody began to write it
  created_at timestamptz(3) not null default now(),
  primary key (team_id, integration_id, project_id, pull_request),
  foreign key (team_id, integration_id) references integration on delete cascade
);

create index pull_request_comment_by_project on pull_request_comment (project_id);
