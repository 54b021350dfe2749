-- People: their accounts, places in teams, sessions and invitations; and the log of who did what.
-- An account may be in many teams, so its tables do not start with one.

create table account (
  id uuid primary key,
  email text not null,
  name text not null,
  password_hash text, -- argon2id; null: signs in with OpenID Connect only
  oidc_issuer text,
  oidc_subject text, -- the issuer's own name for the account: an address may go to somebody else, this never does
  created_at timestamptz(3) not null default now(),
  check ((oidc_issuer is null) = (oidc_subject is null)),
  unique (oidc_issuer, oidc_subject)
);

create unique index account_email on account (lower(email));

create table membership (
  team_id uuid not null references team on delete cascade,
  account_id uuid not null references account on delete cascade,
  role text not null check (role in ('owner', 'member', 'viewer')),
  created_at timestamptz(3) not null default now(),
  primary key (team_id, account_id)
);

create index membership_by_account on membership (account_id);

create table session (
  id uuid primary key,
  account_id uuid not null references account on delete cascade,
  digest bytea not null unique, -- SHA-256 of the token, which is stored nowhere
  created_at timestamptz(3) not null default now(),
  last_seen_at timestamptz(3) not null default now(), -- coarse: written every few minutes at most
  expires_at timestamptz(3) not null, -- moves on with last_seen_at, up to a bound
  user_agent text,
  address text
);

create index session_by_account on session (account_id);
create index session_expiry on session (expires_at);

create table invitation (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  role text not null check (role in ('owner', 'member', 'viewer')),
  digest bytea not null unique, -- SHA-256 of the token in the link, which is stored nowhere
  email text, -- null: for whoever has the link
  created_by uuid not null references account on delete cascade,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  primary key (team_id, id)
);

create index invitation_by_account on invitation (created_by);

-- What makes the first account: the token of every link that a start has printed, until there is an account.
create table setup_token (
  digest bytea primary key, -- SHA-256
  created_at timestamptz(3) not null default now()
);

-- Who did what to members, keys and settings. It outlives those whom it tells of.
create table audit_entry (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  at timestamptz(3) not null default now(),
  account_id uuid, -- null: what acted was no account
  actor text not null, -- as it was called then: an e-mail address, an API key's leading part, the command line
  action text not null,
  subject text not null, -- what it was done to, as it was called then
  details json not null default '{}', -- never a secret
  primary key (team_id, id)
);

create function refuse_change_of_audit_entry() returns trigger language plpgsql as $$
begin
  -- With its team it goes.
  if tg_op = 'DELETE' and not exists (select from team where id = old.team_id) then
    return old;
  end if;
  raise exception 'The audit log is append-only';
end
$$;

create trigger audit_entry_append_only before update or delete on audit_entry
  for each row execute function refuse_change_of_audit_entry();
