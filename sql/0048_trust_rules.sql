-- CI jobs that get a key for the id token of their CI system: the rules of projects, and the tokens that have been used.

create table trust_rule (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null,
  kind text not null check (kind in ('github', 'gitlab')),
  issuer text not null,
  repository_id text not null,
  owner_id text, -- of kind github
  repository text, -- its name, which is shown and not compared
  events text[] not null, -- empty: every event
  refs text[] not null, -- empty: every ref
  issuer_keys json, -- public keys; null: those that the issuer publishes
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3), -- coarse: written every few minutes at most
  primary key (project_id, id),
  check ((kind = 'github') = (owner_id is not null))
);

create index trust_rule_by_issuer on trust_rule (issuer) where issuer_keys is null;

-- Each token makes one key. A row is kept until the token has expired.
create table used_ci_token (
  digest bytea primary key, -- SHA-256 of its issuer and its jti
  attempt bytea, -- SHA-256 of the Idempotency-Key: the same request may be repeated
  key_id uuid not null,
  expires_at timestamptz(3) not null
);

create index used_ci_token_by_expiry on used_ci_token (expires_at);

alter table api_key add column trust_rule_id uuid; -- of a CI job's key: the rule that it was made by, and with which it is revoked
create index api_key_of_ci on api_key (project_id, expires_at) where trust_rule_id is not null;
