-- Owners of test cases by an ownership file, such as the repository's CODEOWNERS.

create table owners_file (
  project_id uuid primary key references stored_project (id) on delete cascade,
  content text not null,
  digest text not null, -- SHA-256 of content and syntax, hexadecimal
  syntax text not null check (syntax in ('github', 'gitlab')),
  path text, -- in the repository; null: unknown
  branch text, -- as the client says; null: unknown
  commit text,
  stored_at timestamptz(3) not null default now()
);

-- The lists of owners that the rules of the file give to test cases of the project: few, whatever the number of cases.
create table owner_list (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null, -- the first 128 bits of the SHA-256 of the names, so that the same list has the same id again
  names text[] not null,
  primary key (project_id, id)
);

-- The owners by the file; those of the column "owner", which people set, come before them.
alter table test_case add column owner_list uuid; -- null: none
create index test_case_by_owner_list on test_case (project_id, owner_list, number) where owner_list is not null;
