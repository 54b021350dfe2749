-- Environments of a team and their variables, whose values are sealed.

create table environment (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  slug text not null,
  name text not null,
  base_url text,
  description text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (team_id, id),
  unique (team_id, slug)
);

create table variable (
  team_id uuid not null,
  environment_id uuid not null,
  name text not null,
  secret boolean not null, -- write-only: its value never leaves but with a lease
  sealed bytea not null, -- AES-256-GCM, bound to team, environment and name; see src/seal.ts
  updated_at timestamptz(3) not null default now(),
  primary key (team_id, environment_id, name),
  foreign key (team_id, environment_id) references environment on delete cascade
);

-- Which keys have sealed anything: bytes 2 to 5 name the key.
create index variable_key on variable (substring(sealed from 2 for 4));
